package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

func TestParseMount(t *testing.T) {
	t.Parallel()
	cwd := t.TempDir()
	for _, dir := range []string{"a:b", "src/rw"} {
		if err := os.MkdirAll(filepath.Join(cwd, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for spec, want := range map[string]api.Mount{
		".:/w":         {Source: cwd, Destination: "/w"},
		"./src/:/w/x/": {Source: cwd + "/src", Destination: "/w/x"},
		"src:/w:rw":    {Source: cwd + "/src", Destination: "/w", ReadWrite: true},
		"src:/w:ro":    {Source: cwd + "/src", Destination: "/w"},
		"src/rw:/w":    {Source: cwd + "/src/rw", Destination: "/w"},
		"a:b:/w:rw":    {Source: cwd + "/a:b", Destination: "/w", ReadWrite: true},
		cwd + ":/w:rw": {Source: cwd, Destination: "/w", ReadWrite: true},
	} {
		got, err := parseMount(cwd, spec)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", spec, got, err, want)
		}
	}
	for _, spec := range []string{"", ":", "src", "src:", ":/w", "src:rw", "src:w", "gone:/w", ":rw", "src::rw"} {
		if got, err := parseMount(cwd, spec); err == nil {
			t.Errorf("%q passes as %+v", spec, got)
		}
	}
}

func TestInsideOf(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"project/src", "projects", "data"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("project", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	mounts := []api.Mount{
		{Source: root + "/project", Destination: "/w"},
		{Source: root + "/project/src", Destination: "/s"},
		{Source: root + "/data", Destination: "/d"},
	}
	for dir, want := range map[string]string{
		"project": "/w", "project/src": "/s", "project/src/x": "/s/x", "link/src": "/s", "data/a/b": "/d/a/b", "projects": "", ".": "",
	} {
		if got := insideOf(filepath.Join(root, dir), mounts); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
