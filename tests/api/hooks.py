"""What the generator must not send: commands, which the engine would run."""

import schemathesis

# A credential's command, the tunnel's, and whatever else is run by a shell.
RUNS = "command"


def _names_a_command(value) -> bool:
    match value:
        case dict():
            return any(RUNS in str(key).lower() or _names_a_command(inner) for key, inner in value.items())
        case list():
            return any(map(_names_a_command, value))
        case str():
            return RUNS in value.lower()
        case _:
            return False


@schemathesis.hook
def filter_case(context, case) -> bool:
    parts = [case.path_parameters, case.query, case.body]
    return not any(_names_a_command(part) for part in parts)
