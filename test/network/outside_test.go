package network

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
)

// outside is what agents have no business with: services of this machine that answer "open" to
// whoever reaches them.
type outside struct {
	tcp, udp int
	address  string // of the machine beside the loopback; empty if it has none
	abstract string // name of a Unix socket without the leading zero
}

func openOutside(t *testing.T) outside {
	t.Helper()
	o := outside{abstract: fmt.Sprintf("fit-test-%d-%s", os.Getpid(), t.Name()), address: ownAddress(t)}
	tcp, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	unix, err := net.Listen("unix", "@"+o.abstract)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, closer := range []io.Closer{tcp, unix, udp} {
			closer.Close()
		}
	})
	o.tcp, o.udp = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	go greet(tcp)
	go greet(unix)
	go echo(udp)
	return o
}

// ownAddress is an address under which this machine reaches itself.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	return ""
}

func greet(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "open\n")
		conn.Close()
	}
}

// echo answers every datagram with itself, as a resolver repeats the question that it answers.
func echo(conn net.PacketConn) {
	buffer := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = conn.WriteTo(buffer[:n], from)
	}
}

// probe is a program of the agent: it makes every attempt and writes one line for each, "open" or
// "closed". It solves the task with the answer of the service.
const probe = `import os, socket, sys, glob
def tcp(host, port):
    with socket.create_connection((host, port), 60) as c:
        return c.recv(16) != b""
def udp(host, payload):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(60); s.connect((host, UDP)); s.send(payload)
        return s.recv(512) == payload
def abstract():
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60); s.connect("\0" + ABSTRACT)
        return s.recv(16) != b""
def forwarder():
    for status in glob.glob("/proc/[0-9]*"):
        for name in ("comm", "cmdline", "environ"):
            try:
                if b"fit-sandbox-network" in open(status + "/" + name, "rb").read(): return True
            except OSError: pass
    return False
QUERY = bytes.fromhex("1234010000010000000000000366697407696e76616c69640000010001")  # fit.invalid, A
attempts = {
    "tcp to the loopback": lambda: tcp("127.0.0.1", TCP),
    "udp to the loopback": lambda: udp("127.0.0.1", b"hello"),
    "dns": lambda: udp("127.0.0.1", QUERY),
    "abstract unix socket": abstract,
    "a route": lambda: len(open("/proc/net/route").readlines()) > 1,
    "the forwarder": forwarder,
}
if ADDRESS:
    attempts["tcp to the address"] = lambda: tcp(ADDRESS, TCP)
    attempts["udp to the address"] = lambda: udp(ADDRESS, b"hello")
with open("reached.txt", "w") as out:
    for name, attempt in attempts.items():
        try: result = attempt()
        except OSError: result = False
        print(name + ":", "open" if result else "closed", file=out)
    listening = {int(l.split()[1].rsplit(":", 1)[1], 16) for table in ("tcp", "tcp6", "udp", "udp6")
                 for l in open("/proc/net/" + table).readlines()[1:] if l.split()[3] in ("0A", "07")}
    print("listening:", *sorted(listening - {int(os.environ["PORT"])}), file=out)
with socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 60) as c, open("answer.txt", "w") as out:
    c.sendall(b"\n"); out.write(c.makefile().readline())
`
