import os, socket
routes = len(open("/proc/net/route").readlines()) - 1
said = " ".join([os.environ["WORD"], open("/words.txt").read().strip(), open("/shared/seed").read().strip(),
                 "routes" if routes else "enclosed"])
server = socket.create_server(("0.0.0.0", 8000))
while True:
    asked, _ = server.accept()
    asked.sendall((said + "\n").encode())
    asked.close()
