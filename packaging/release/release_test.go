package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The same files, made in another order, at another time and under another umask,
// make the same archive; another byte, name or permission makes another.
func TestArchiveIsOfNamesAndContents(t *testing.T) {
	date := time.Unix(1_700_000_000, 0)
	type entry struct {
		name, text string
		mode       os.FileMode
	}
	files := []entry{{"bin/b", "two", 0o755}, {"bin/a", "one", 0o755}, {"share/x", "three", 0o644}}
	pack := func(files []entry, private os.FileMode, modified time.Time) []byte {
		tree := t.TempDir()
		for _, f := range files {
			name := filepath.Join(tree, f.name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(f.text), 0o600),
				os.Chmod(name, f.mode&^private), os.Chtimes(name, modified, modified)); err != nil {
				t.Fatal(err)
			}
		}
		target := filepath.Join(t.TempDir(), "a.tar.gz")
		if err := writeArchive(target, tree, "folder", date); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := pack(files, 0, date)
	again := slices.Clone(files)
	slices.Reverse(again)
	if !bytes.Equal(want, pack(again, 0o077, date.Add(time.Hour))) {
		t.Error("order, umask or time decide about the bytes")
	}
	for i, change := range []func(*entry){
		func(e *entry) { e.text = "other" }, func(e *entry) { e.name = "bin/c" }, func(e *entry) { e.mode = 0o644 },
	} {
		other := slices.Clone(files)
		change(&other[0])
		if bytes.Equal(want, pack(other, 0, date)) {
			t.Errorf("change %d is not seen", i)
		}
	}
	if names := entries(t, want, date); !slices.Equal(names, []string{"folder/", "folder/bin/", "folder/bin/a", "folder/bin/b", "folder/share/", "folder/share/x"}) {
		t.Errorf("not in order: %q", names)
	}
}

// entries lists an archive and looks at who owns what, and when it was made.
func entries(t *testing.T, packed []byte, date time.Time) []string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if plain.Name != "" || !plain.ModTime.IsZero() {
		t.Errorf("the compression names %q and %v", plain.Name, plain.ModTime)
	}
	var names []string
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(date) {
			t.Errorf("%s is of %d:%d and %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		names = append(names, h.Name)
	}
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("LICENSE", "Ask my aunt.")
	write("license.go", "Permission is hereby granted, free of charge, to any person")
	if _, err := readLicence("m.example/odd", dir); err == nil || !strings.Contains(err.Error(), "m.example/odd") {
		t.Errorf("a text that nobody has read passed: %v", err)
	}
	write("LICENSE", "Redistribution and use in source and\nbinary forms ... Neither the name of")
	if got := recognise("Redistribution and use in source and binary forms ... 3. The name of any author may not be used to endorse"); got != "BSD-3-Clause" {
		t.Errorf("the third clause in other words: %s", got)
	}
	write("NOTICE", "by us")
	l, err := readLicence("m.example/fine", dir)
	if err != nil || !slices.Equal(l.ids, []string{"BSD-3-Clause"}) || len(l.texts) != 2 {
		t.Errorf("%v %v", l, err)
	}
}

// The bill has a program's modules as the program itself tells them.
func TestBill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	parts := linked(info)
	if parts[0].name != "std" || !strings.HasPrefix(parts[0].version, "1.") {
		t.Errorf("Go's own library is %v", parts[0])
	}
	m := materials{version: "v1", arch: "amd64", date: time.Unix(0, 0).UTC(), modules: map[string]part{
		"a.example/m@v1.0.0+incompatible": {name: "a.example/m", version: "v1.0.0+incompatible", sum: "h1:x", licence: licence{ids: []string{"MIT"}}},
	}, programs: []program{{name: "p", sha256: "00", modules: []string{"a.example/m@v1.0.0+incompatible"}}}}
	data, err := m.encodeBill()
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	ref := "pkg:golang/a.example/m@v1.0.0%2Bincompatible"
	if len(b.Components) != 2 || b.Components[1].PURL != ref || b.Components[1].Licenses[0].License.ID != "MIT" {
		t.Errorf("%s", data)
	}
	if len(b.Dependencies) != 2 || !slices.Equal(b.Dependencies[1].DependsOn, []string{ref}) {
		t.Errorf("%s", data)
	}
}

// Versions of packages are in the order of the commits that they are of.
func TestDebianVersion(t *testing.T) {
	date := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	ordered := []string{"470daa47318f", "v1.2.0-rc.1", "v1.2.0", "v1.2.0-7-g470daa47318f", "v1.2.0-12-g0123456789ab", "v1.2.1"}
	want := []string{"0~20261123010203.470daa47318f", "1.2.0~rc.1", "1.2.0", "1.2.0+7.g470daa47318f", "1.2.0+12.g0123456789ab", "1.2.1"}
	for i, described := range ordered {
		if got := debianVersion(described, date); got != want[i] {
			t.Errorf("%s is %s; want %s", described, got, want[i])
		}
	}
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		return
	}
	for i := 1; i < len(want); i++ {
		if out, err := exec.CommandContext(t.Context(), dpkg, "--compare-versions", want[i-1], "lt", want[i]).CombinedOutput(); err != nil {
			t.Errorf("dpkg does not have %s before %s: %v %s", want[i-1], want[i], err, out)
		}
	}
}
