import { createServer } from "node:http";

const todos = [
  { who: "Mira", what: "water the plants", done: true },
  { who: "Jon", what: "call the bank", done: false },
  { who: "Mira", what: "book the train", done: false },
];

createServer((request, response) => {
  if (request.url === "/health") return response.end("ok");
  if (request.headers.authorization !== `Bearer ${process.env.SERVICE_TOKEN}`) {
    response.statusCode = 401;
    return response.end();
  }
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(todos));
}).listen(Number(process.env.PORT), "127.0.0.1");
