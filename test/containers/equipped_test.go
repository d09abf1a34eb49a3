package containers

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// numbersServer is an MCP server with one tool.
const numbersServer = `#!/bin/bash
while IFS= read -r line; do
  id=$(sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p' <<< "$line")
  [ -n "$id" ] || continue
  case $line in
    *'"initialize"'*)
      version=$(sed -nE 's/.*"protocolVersion":"([^"]*)".*/\1/p' <<< "$line")
      result='{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"numbers","version":"1"}}' ;;
    *'"tools/list"'*)
      result='{"tools":[{"name":"Pick","description":"Picks a number.","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"tools/call"'*)
      echo $1 > /tmp/picked
      result='{"content":[{"type":"text","text":"'$1'"}]}' ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// Every agent solves a Harbor task without network, as the user that the task names: it has its
// model, the tools of the servers that the task runs beside it, and the skills of its image.
func TestEveryAgentSolvesAHarborTaskWithToolsAndSkills(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.url = scriptedtest.ServeAll(t, map[string]string{"": `{"turns":[{"calls":[{"mcp":"numbers/Pick","input":{}}]},
		{"calls":[{"bash":"cat /tmp/picked .*/skills/count/SKILL.md > answer.txt; ` + lookAround + `"}]},{"text":"Done."}]}`},
		scripted.Options{})
	b.harborOnly()
	b.put("answer/task.toml", "[agent]\nuser = \"agent\"\n[environment]\nnetwork_mode = \"no-network\"\n"+
		"skills_dir = \"/opt/skills\"\n"+
		"mcp_servers = [{name = \"numbers\", transport = \"stdio\", command = \"/opt/numbers\", args = [\"42\"]}]\n")
	b.put("answer/environment/Dockerfile", "FROM debian:bookworm-slim\nCOPY numbers /opt/numbers\n"+
		"COPY skills /opt/skills\nWORKDIR /app\n")
	b.put("answer/environment/numbers", numbersServer)
	b.put("answer/environment/skills/count/SKILL.md", "---\nname: count\ndescription: Counts.\n---\nCount up.\n")
	b.put("answer/tests/test.sh", `#!/bin/bash
[ "$(head -n 1 answer.txt) $(tail -n 1 answer.txt)" = "42 Count up." ] && [ "$(cat networks.txt)" = lo ] &&
  [ "$(cat from.txt) $(cat home.txt)" = "yes /home/agent" ] && reward=1
echo ${reward:-0} > /logs/verifier/reward.txt
`)
	args := b.arguments("--runs", "1", "--attempts", "1", "--concurrency", "4")
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		args = append(args, b.arm(id)...)
	}
	records := b.run(args)
	for id := range agents {
		if r := records[id]; r.Verdict != ledger.Pass || r.Network != sandbox.NetworkModel || r.Container == nil {
			t.Errorf("%s: %s, %s: %s %+v %+v", id, r.Verdict, r.ErrorClass, r.ErrorMessage, r.AgentError, r.HiddenTests)
		}
	}
}

// An image that a container has stays when the images of tasks are removed. The engine has a store
// of its own here: other tests need their images.
func TestCleanRemovesBuiltImages(t *testing.T) {
	b := newBench(t)
	store := t.TempDir()
	conf := filepath.Join(store, "storage.conf")
	text := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", store+"/graph", store+"/run")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_STORAGE_CONF", conf)
	podman := func(args ...string) string {
		out, err := exec.Command("podman", args...).Output()
		if err != nil {
			t.Fatalf("podman %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(store, "image.tar")
	if err := os.WriteFile(archive, empty.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"dev.fit.build", "another"} {
		podman("import", "--quiet", "--change", "LABEL "+label+"=1", archive, "localhost/"+label+":1")
	}
	container := podman("create", "localhost/dev.fit.build:1", "true")
	for _, want := range []string{"localhost/another:1\nlocalhost/dev.fit.build:1", "localhost/another:1"} {
		if code, out, errs := b.command("clean", "--images"); code != 0 {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		if left := podman("images", "--sort", "repository", "--format", "{{.Repository}}:{{.Tag}}"); left != want {
			t.Errorf("left: %q, want %q", left, want)
		}
		podman("rm", "--ignore", container)
	}
}
