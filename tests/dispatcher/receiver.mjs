// A plain receiver on Node: prints its port, then each request as one line of JSON.
import { createServer } from "node:http";

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    console.log(JSON.stringify({ path: request.url, headers: request.headers, body }));
    response.writeHead(204).end();
  });
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ listening: server.address().port })));
