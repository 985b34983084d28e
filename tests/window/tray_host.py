"""A desktop's tray on the session bus: it takes icons, and opens and presses their menus when told to.

One command a line on standard input, one line of JSON a command on standard output:
    menu          the labels of the first icon's menu, those of a menu within it as "Quit… > Quit now"
    press LABEL   presses the item whose label begins so
"""

import json
import sys
import threading

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.kde.StatusNotifierWatcher"
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PROPERTIES = "org.freedesktop.DBus.Properties"


class Watcher(dbus.service.Object):
    def __init__(self, bus):
        self.bus = bus
        self.items = []
        super().__init__(dbus.service.BusName(NAME, bus), "/StatusNotifierWatcher")

    @dbus.service.method(NAME, in_signature="s", sender_keyword="sender")
    def RegisterStatusNotifierItem(self, service, sender=None):
        name, path = (sender, service) if service.startswith("/") else (service, "/StatusNotifierItem")
        self.items.append((name, path))

    @dbus.service.method(NAME, in_signature="s")
    def RegisterStatusNotifierHost(self, service):
        pass

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return self.GetAll(interface)[name]

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return {
            "IsStatusNotifierHostRegistered": True,
            "ProtocolVersion": dbus.Int32(0),
            "RegisteredStatusNotifierItems": dbus.Array([name + path for name, path in self.items], "s"),
        }

    @dbus.service.signal(NAME)
    def StatusNotifierHostRegistered(self):
        pass

    def menu(self):
        name, path = next(item for item in reversed(self.items) if self.bus.name_has_owner(item[0]))
        item = dbus.Interface(self.bus.get_object(name, path, introspect=False), PROPERTIES)
        return dbus.Interface(self.bus.get_object(name, item.Get(ITEM, "Menu"), introspect=False), MENU)

    def entries(self):
        def walk(node, before):
            number, properties, children = node
            label = before + str(properties.get("label", "")).replace("__", "_")
            # The root has a label that nobody sees, separators have none.
            if int(number) == 0:
                label = ""
            elif "label" in properties and properties.get("type") != "separator":
                yield int(number), label
            for child in children:
                yield from walk(child, label + " > " if label else "")

        _revision, layout = self.menu().GetLayout(0, -1, ["label", "type"])
        return list(walk(layout, ""))

    def answer(self, line):
        command, _, label = line.strip().partition(" ")
        if command == "menu":
            return [label for _, label in self.entries()]
        number = next(number for number, known in self.entries() if known.startswith(label))
        self.menu().Event(number, "clicked", dbus.Int32(0, variant_level=1), dbus.UInt32(0))
        return "pressed"


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    watcher = Watcher(dbus.SessionBus())
    loop = GLib.MainLoop()

    def say(line):
        try:
            told = watcher.answer(line)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and asks again
            told = {"error": str(error) or type(error).__name__}
        print(json.dumps(told), flush=True)
        return False

    def read():
        for line in sys.stdin:
            GLib.idle_add(say, line)
        GLib.idle_add(loop.quit)

    threading.Thread(target=read, daemon=True).start()
    watcher.StatusNotifierHostRegistered()
    print(json.dumps("ready"), flush=True)
    loop.run()


main()
