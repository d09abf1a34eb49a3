package workspace

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/helper"
)

// goCacheName is the name under which our own binary serves a build cache to the go command (its
// variable GOCACHEPROG). A warmed cache is mounted read-only, and the go command does not work with
// a cache that it cannot write to. A separate cache for every cell would cost a thousand files;
// this costs the start of a process.
const goCacheName = "fit-go-cache"

// GoCacheProgram returns the GOCACHEPROG with which the go command reads the warmed cache of an
// environment and writes to its own directory. It is empty without a warmed cache.
func GoCacheProgram(environment map[string]string, own string) string {
	server := environment["GOCACHEPROG"]
	if server == "" {
		return ""
	}
	return server[:strings.LastIndexByte(server, ' ')+1] + own
}

var _ = helper.Become(goCacheName, serveGoCache)

// serveGoCache serves a warmed cache and a directory of one's own.
func serveGoCache(args []string) (status int) {
	if len(args) != 2 {
		return 2
	}
	server := goCache{warm: args[0], own: args[1]}
	if err := server.serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		return 1
	}
	return 0
}

// goCacheRequest and goCacheResponse are the messages of the go command's protocol, one JSON value
// per line.
type goCacheRequest struct {
	ID       int64
	Command  string
	ActionID []byte `json:",omitempty"`
	OutputID []byte `json:",omitempty"`
	BodySize int64  `json:",omitempty"`
}

type goCacheResponse struct {
	ID            int64
	Err           string     `json:",omitempty"`
	KnownCommands []string   `json:",omitempty"`
	Miss          bool       `json:",omitempty"`
	OutputID      []byte     `json:",omitempty"`
	Size          int64      `json:",omitempty"`
	Time          *time.Time `json:",omitempty"`
	DiskPath      string     `json:",omitempty"`
}

// goCache answers from its own directory, and then from a warmed cache in the go command's own
// format. It writes only to the first.
type goCache struct{ warm, own string }

func (c goCache) serve(in io.Reader, out io.Writer) error {
	if err := os.MkdirAll(c.own, 0o700); err != nil {
		return err
	}
	decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<16))
	buffered := bufio.NewWriter(out)
	answer := func(r goCacheResponse) error {
		if err := json.NewEncoder(buffered).Encode(r); err != nil {
			return err
		}
		return buffered.Flush()
	}
	if err := answer(goCacheResponse{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for {
		var request goCacheRequest
		if err := decoder.Decode(&request); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var body []byte
		if request.Command == "put" && request.BodySize > 0 {
			if err := decoder.Decode(&body); err != nil {
				return err
			}
		}
		if err := answer(c.handle(request, body)); err != nil || request.Command == "close" {
			return err
		}
	}
}

func (c goCache) handle(request goCacheRequest, body []byte) goCacheResponse {
	response := goCacheResponse{ID: request.ID}
	var err error
	switch request.Command {
	case "get":
		var found bool
		if found, err = c.get(hex.EncodeToString(request.ActionID), &response); !found {
			response.Miss = true
		}
	case "put":
		response.DiskPath, err = c.put(hex.EncodeToString(request.ActionID), hex.EncodeToString(request.OutputID), body)
	case "close":
	default:
		err = fmt.Errorf("unknown command %q", request.Command)
	}
	if err != nil {
		response.Err = err.Error()
	}
	return response
}

// get looks up an action. An entry that cannot be read counts as missing.
func (c goCache) get(action string, response *goCacheResponse) (bool, error) {
	if len(action) < 2 {
		return false, errors.New("no action")
	}
	if found, err := lookUp(filepath.Join(c.own, action+"-a"), action,
		func(output string) string { return filepath.Join(c.own, output+"-d") }, response); found || err != nil {
		return found, err
	}
	return lookUp(filepath.Join(c.warm, action[:2], action+"-a"), action,
		func(output string) string { return filepath.Join(c.warm, output[:2], output+"-d") }, response)
}

// lookUp reads an entry in the go command's format: "v1 action output size time".
func lookUp(entry, action string, data func(output string) string, response *goCacheResponse) (bool, error) {
	text, err := os.ReadFile(entry)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	fields := strings.Fields(string(text))
	if len(fields) != 5 || fields[0] != "v1" || fields[1] != action || len(fields[2]) < 2 {
		return false, nil
	}
	output, err := hex.DecodeString(fields[2])
	size, sizeErr := strconv.ParseInt(fields[3], 10, 64)
	nanoseconds, timeErr := strconv.ParseInt(fields[4], 10, 64)
	path := data(fields[2])
	info, statErr := os.Stat(path)
	if errors.Join(err, sizeErr, timeErr, statErr) != nil || info.Size() != size {
		return false, nil
	}
	put := time.Unix(0, nanoseconds)
	response.OutputID, response.Size, response.Time, response.DiskPath = output, size, &put, path
	return true, nil
}

// put stores a body and the entry that leads to it. Entries come last and whole, so that a second
// go command never sees half of one.
func (c goCache) put(action, output string, body []byte) (string, error) {
	if len(action) < 2 || len(output) < 2 {
		return "", errors.New("no action or no output")
	}
	path := filepath.Join(c.own, output+"-d")
	if info, err := os.Stat(path); err != nil || info.Size() != int64(len(body)) {
		if err := atomicfile.Write(path, 0o600, body); err != nil {
			return "", err
		}
	}
	entry := fmt.Sprintf("v1 %s %s %20d %20d\n", action, output, len(body), time.Now().UnixNano())
	return path, atomicfile.Write(filepath.Join(c.own, action+"-a"), 0o600, []byte(entry))
}
