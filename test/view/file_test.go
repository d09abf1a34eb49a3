package view

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exported writes what a fit command prints into a file.
func exported(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	out, err := fitCommand(t, args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("fit %v: %v", args, err)
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The exported page opens from disk without a server, fits a phone, and prints.
func TestExportedFile(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), demoDirectory(t)
	path := exported(t, "benchmark", "report", "--input", dir, "--format", "html")
	printed := b.run(t, "file", map[string]any{"path": path, "word": "all tasks", "tasks": 12})
	if size := decode[int](t, printed); size < 10_000 {
		t.Errorf("the printed page has %d bytes", size)
	}
}

func TestExportedComparison(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), demoDirectory(t)
	path := exported(t, "benchmark", "compare", dir+":before", dir+":after", "--format", "html")
	var want comparison
	answerOf(t, &want, "benchmark", "compare", dir+":before", dir+":after", "--format", "json")
	b.run(t, "compareFile", map[string]any{
		"path": path, "tasks": 12, "cells": 24, "texts": []string{"all tasks", points(want.Decision.Effect, 1)},
	})
}

func TestExportedTrace(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	path := exported(t, "trace", "export", "../../examples/traces/team.ndjson", "--format", "html")
	b.run(t, "traceFile", map[string]any{"path": path, "word": "worker", "hits": "hit"})
}

// TestExportedLongTrace: a trace of twelve megabytes opens from its file, which has two.
func TestExportedLongTrace(t *testing.T) {
	t.Parallel()
	b, c := chromium(t), begin()
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 3000)
	entries := 1
	for c.Len() < 12<<20 {
		_, _ = random.Read(noise)
		c.text(base64.StdEncoding.EncodeToString(noise))
		if entries++; entries == 1500 {
			c.call("Bash", map[string]any{"command": "make"}, "the one error", true)
			entries += 2
		}
	}
	c.text("the last words")
	path := exported(t, "trace", "export", c.save(t), "--format", "html")
	total := fmt.Sprintf("%d\u2009%03d", (entries+1)/1000, (entries+1)%1000)
	b.run(t, "cutTrace", map[string]any{"path": path, "total": total})
}

// exportedID is the experiment of an exported page.
func exportedID(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), `"start":"#/x/`)
	id, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatal("the page opens no experiment")
	}
	return id
}
