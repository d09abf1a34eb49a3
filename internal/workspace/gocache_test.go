package workspace

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// talk sends requests to a server and returns its answers.
func talk(t *testing.T, c goCache, requests ...any) []goCacheResponse {
	t.Helper()
	var in, out bytes.Buffer
	for _, request := range requests {
		if err := json.NewEncoder(&in).Encode(request); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.serve(&in, &out); err != nil {
		t.Fatal(err)
	}
	var responses []goCacheResponse
	for decoder := json.NewDecoder(&out); ; {
		var one goCacheResponse
		if err := decoder.Decode(&one); err == io.EOF {
			return responses
		} else if err != nil {
			t.Fatal(err)
		}
		one.Time = nil
		responses = append(responses, one)
	}
}

func TestTheServedGoCacheReadsBothAndWritesToItsOwn(t *testing.T) {
	c := goCache{warm: t.TempDir(), own: filepath.Join(t.TempDir(), "own")}
	write(t, c.warm, map[string]string{
		"aa/aabb-a": "v1 aabb ccdd                    4          1600000000000000000\n",
		"cc/ccdd-d": "warm", "bb/bb00-a": "garbage",
	})
	got := talk(t, c,
		goCacheRequest{ID: 1, Command: "get", ActionID: []byte{0xaa, 0xbb}},
		goCacheRequest{ID: 2, Command: "get", ActionID: []byte{0xbb, 0x00}},
		goCacheRequest{ID: 3, Command: "get", ActionID: []byte{0x11}},
		goCacheRequest{ID: 4, Command: "put", ActionID: []byte{0x11}, OutputID: []byte{0x22}, BodySize: 3},
		[]byte("own"),
		goCacheRequest{ID: 5, Command: "get", ActionID: []byte{0x11}},
		goCacheRequest{ID: 6, Command: "what"}, goCacheRequest{ID: 7, Command: "close"},
		goCacheRequest{ID: 8, Command: "get"},
	)
	own := filepath.Join(c.own, "22-d")
	want := []goCacheResponse{
		{KnownCommands: []string{"get", "put", "close"}},
		{ID: 1, OutputID: []byte{0xcc, 0xdd}, Size: 4, DiskPath: filepath.Join(c.warm, "cc", "ccdd-d")},
		{ID: 2, Miss: true},
		{ID: 3, Miss: true},
		{ID: 4, DiskPath: own},
		{ID: 5, OutputID: []byte{0x22}, Size: 3, DiskPath: own},
		{ID: 6, Err: `unknown command "what"`},
		{ID: 7},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if content, err := os.ReadFile(own); err != nil || string(content) != "own" {
		t.Errorf("stored %q, %v", content, err)
	}
	if len(list(t, c.warm)) != 3 {
		t.Error("the warmed cache was written to")
	}
}

func TestWhichGoVersionsAskForACache(t *testing.T) {
	for version, want := range map[string]bool{
		"go1.23.4": false, "go1.24": true, "go1.26.0\n": true, "go2.0": true,
		"devel go1.27-abc": true,
	} {
		t.Run(version, func(t *testing.T) {
			if got := servesCache(version); got != want {
				t.Errorf("%s: %v, want %v", strings.TrimSpace(version), got, want)
			}
		})
	}
}
