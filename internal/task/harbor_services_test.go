package task_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/task"
)

// The services of a compose file are read as they are written, in the order in which they start.
func TestServicesOfAHarborTask(t *testing.T) {
	t.Parallel()
	dir := harborTask(t, "[environment]\nnetwork_mode = \"no-network\"\n[[environment.mcp_servers]]\n"+
		"name = \"x\"\ntransport = \"streamable-http\"\nurl = \"http://web:8000/mcp\"\n", map[string]string{
		"environment/web/Dockerfile": "FROM web\n",
		"environment/init.sql":       "create table a;\n",
		"environment/docker-compose.yaml": `
services:
  a-web:
    build: ./web
    command: serve --title "two words" 'and $$more'
    depends_on: {db: {condition: service_healthy}, once: {condition: service_completed_successfully}}
    networks: {inner: {aliases: [web]}}
    deploy: {resources: {limits: {memory: 64M}}}
    ports: ["80:80"]
  db:
    image: postgres:16
    entrypoint: [run, $$HOME]
    environment: [USER=me, "DB_PASSWORD=${NOT_SET:-correct-horse-battery}"]
    volumes: ["data:/var/lib/data", "./init.sql:/init.d/init.sql:ro", /scratch]
    healthcheck: {test: pg_isready -U me, interval: 2s, timeout: 1m30s, retries: 7, start_period: 4s}
  once: {image: busybox, working_dir: /w, user: "7"}
  extra: {image: nothing, profiles: [debug]}
volumes: {data: }
`,
	})
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(family.Tasks) != 1 {
		t.Fatal(family.Warnings)
	}
	e := family.Tasks[0].Settings.Environment
	web := e.Services[2]
	if web.Environment.Context != filepath.Join(dir, "environment", "web") || web.Environment.Content == "" {
		t.Errorf("it is built in %q", web.Environment.Context)
	}
	e.Services[2].Environment = task.Environment{}
	want := []task.Service{
		{
			Name: "db", Entrypoint: []string{"run", "$HOME"},
			Environment: task.Environment{
				Image: "postgres:16", Env: map[string]string{"USER": "me"}, BuildTimeout: 10 * time.Minute,
				Healthcheck: &task.Healthcheck{
					Command: "/bin/sh -c pg_isready -U me", Argv: []string{"/bin/sh", "-c", "pg_isready -U me"},
					Interval: 2 * time.Second, Timeout: 90 * time.Second, StartPeriod: 4 * time.Second,
					StartInterval: 2 * time.Second, Retries: 7,
				},
				Mounts: []task.Mount{
					{Volume: "data", Target: "/var/lib/data"},
					{Source: filepath.Join(dir, "environment", "init.sql"), Target: "/init.d/init.sql", ReadOnly: true},
				},
			},
			Secrets: map[string]string{"DB_PASSWORD": "correct-horse-battery"},
		},
		{Name: "once", Environment: task.Environment{
			Image: "busybox", Workdir: "/w", User: "7", Env: map[string]string{}, BuildTimeout: 10 * time.Minute,
		}},
		{
			Name: "a-web", Aliases: []string{"web"},
			Command: []string{"serve", "--title", "two words", "and $more"},
			Needs:   map[string]string{"db": task.ServiceHealthy, "once": task.ServiceCompleted},
			Limits:  task.Limits{MemoryMB: 64},
		},
	}
	if diff := cmp.Diff(want, e.Services); diff != "" {
		t.Error(diff)
	}
	if got := family.Tasks[0].Secrets()["DB_PASSWORD"]; got != "correct-horse-battery" {
		t.Errorf("the password of a service is not kept out of records: %q", got)
	}
}
