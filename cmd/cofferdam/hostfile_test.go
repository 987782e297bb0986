package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// grounds are the directories of these tests: project, which a sandbox was given to write to that
// has ended; mine, to which none was; and victim, to which nothing may lead.
func grounds(t *testing.T) (project, mine, victim string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	fine(t, err)
	own(t.Setenv, top)
	project, mine, victim = filepath.Join(top, "project"), filepath.Join(top, "mine"), filepath.Join(top, "victim")
	for _, dir := range []string{filepath.Join(top, "state"), project, mine, victim} {
		fine(t, os.Mkdir(dir, 0o755))
	}
	p, err := hostpath.Resolve(project, nil)
	fine(t, err)
	defer p.Close()
	record, err := written.Open(filepath.Join(top, "state", "written"))
	fine(t, err)
	fine(t, record.Add([]hostpath.Tree{{Path: p.Name, ID: p.ID}}))
	return project, mine, victim
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// anyLock takes any lockfile's name.
func anyLock() installer.Resolver {
	return installer.Resolver{LockFits: func(string) bool { return true }}
}

const (
	aPolicy = "packages: { default: deny }\n"
	aLock   = "a==1 --hash=sha256:6161616161616161616161616161616161616161616161616161616161616161\n"
)

// waysToName are all ways in which the command line takes a file's or a directory's path from a
// person. Of the files of a project, TestALinkThatAnAgentCouldHavePutThereWithholdsNames has the ways. text is what the file has. Those that write do so in the end.
func waysToName() []struct {
	name, text string
	dir        bool // it takes a directory's
	use        func(path string) error
} {
	edited := func(e fileEdit, err error) error {
		if err == nil {
			e.after = append([]byte("# changed\n"), e.before...)
			err = e.writeFile()
		}
		return err
	}
	return []struct {
		name, text string
		dir        bool
		use        func(path string) error
	}{
		{"a policy", aPolicy, false, func(path string) error { _, _, err := loadPolicy(path); return err }},
		{"a lockfile", aLock, false, func(path string) error {
			_, err := runFlags{locks: []string{path}}.lockfiles(here(), "", policy.LockRules{})
			return err
		}},
		{"a lockfile that a policy names", aLock, false, func(path string) error {
			_, err := runFlags{}.lockfiles("/", "/policy.yaml", policy.LockRules{Given: true, Files: []string{path}})
			return err
		}},
		{"a lockfile to be pinned in", aLock, false, func(path string) error { return edited(readLockfile(path)) }},
		{"a policy to be added to", aPolicy, false, func(path string) error { return edited(findPolicy(path)) }},
		{"a suggestion", aPolicy, false, func(path string) error {
			return rewrite(api.Suggestion{Source: path, Document: []byte(aPolicy), Suggested: []byte("# changed\n")})
		}},
		{"a plan's lockfile", aLock, false, func(path string) error {
			target, err := newLockTarget(here(), path, anyLock(), true)
			if err == nil {
				err = target.writeLockfile([]byte("# changed\n"))
			}
			return err
		}},
		{"a new policy", "", false, func(path string) error {
			if err := writeNew(path, "# changed\n"); !errors.Is(err, fs.ErrExist) && !strings.Contains(errorText(err), "is there already") {
				return err
			}
			return nil
		}},
		{"a proof", "x", false, func(path string) error { return writeProof(audit.Proof{}, path, true) }},
		{"a client's configuration", "{}", false, func(path string) error {
			client := mcpClients()[0]
			client.project = path
			return edited(mcpInstallFlags{project: true}.planEdit(client, client.entry(testServer)))
		}},
		{"code", "x", false, func(path string) error { _, err := readDocument("code", path, 100); return err }},
		{"what is copied", "x", false, func(path string) error { _, err := kindNamed(path); return err }},
		{"a directory to be copied to", "", true, func(path string) error { return closed(rootNamed(path, false)) }},
		{"a directory to be made", "", true, func(path string) error { return closed(rootNamed(path+"/made", true)) }},
	}
}

// here is the directory that commands are given as theirs.
func here() string {
	cwd, err := os.Getwd()
	if err != nil {
		return "/nowhere"
	}
	return cwd
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func closed(root *os.Root, err error) error {
	if err == nil {
		err = root.Close()
	}
	return err
}

// TestLinksThatAgentsLeft: whatever the command line reads or writes, it does so through no link
// that lies where a sandbox could write, be that long ago; and through others, as ever.
func TestLinksThatAgentsLeft(t *testing.T) {
	for _, way := range waysToName() {
		t.Run(way.name, func(t *testing.T) {
			project, mine, victim := grounds(t)
			secret := filepath.Join(victim, "deep", "file.txt")
			fine(t, os.Mkdir(filepath.Dir(secret), 0o755))
			fine(t, os.WriteFile(secret, []byte(way.text), 0o600))
			paths := map[string]string{"by a directory": "to/deep/file.txt", "by the file": "link.txt"}
			if way.dir {
				paths = map[string]string{"by a directory": "to/deep", "by itself": "to"}
			}
			for _, dir := range []string{project, mine} {
				fine(t, errors.Join(os.Symlink(victim, filepath.Join(dir, "to")), os.Symlink(secret, filepath.Join(dir, "link.txt"))))
			}
			for name, path := range paths {
				err := way.use(filepath.Join(project, path))
				if !strings.Contains(errorText(err), "which some sandbox was given to write to") && !strings.Contains(errorText(err), "where an agent may write or could") {
					t.Errorf("%s: %v, want a refusal that names the link", name, err)
				}
				unchanged(t, secret, way.text)
				if entries, err := os.ReadDir(victim); err != nil || len(entries) != 1 {
					t.Errorf("%s: something was made where the link leads: %v, %v", name, entries, err)
				}
				t.Chdir(project)
				if err := way.use(path); err == nil {
					t.Errorf("%s, from its directory: it is taken", name)
				}
				unchanged(t, secret, way.text)
			}
			for name, path := range paths { // the control
				fine(t, os.WriteFile(secret, []byte(way.text), 0o600))
				if err := way.use(filepath.Join(mine, path)); err != nil && !way.dir {
					t.Errorf("%s, where no sandbox could write: %v", name, err)
				}
			}
		})
	}
}

func unchanged(t *testing.T, path, want string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%s is %q, %v now", path, data, err)
	}
}

// TestLinksWithoutARecord: where it is not known what sandboxes could write to, no link is
// followed, and the sentence says why; everything else goes on.
func TestLinksWithoutARecord(t *testing.T) {
	_, mine, victim := grounds(t)
	file := filepath.Join(victim, "p.yaml")
	fine(t, errors.Join(os.WriteFile(file, []byte(aPolicy), 0o600), os.Symlink(file, filepath.Join(mine, "link.yaml"))))
	if _, _, err := loadPolicy(filepath.Join(mine, "link.yaml")); err != nil { // the control
		t.Fatal(err)
	}
	record := filepath.Join(os.Getenv("COFFERDAM_STATE"), "written")
	fine(t, os.WriteFile(record, []byte("spoilt\n"), 0o600))
	if _, _, err := loadPolicy(filepath.Join(mine, "link.yaml")); !strings.Contains(errorText(err), "where agents could leave links is not known") || !strings.Contains(errorText(err), record) {
		t.Errorf("through a link: %v", err)
	}
	if _, _, err := loadPolicy(file); err != nil {
		t.Errorf("through none: %v", err)
	}
}

// TestEditsAreWrittenWhereTheyWereShown: between the look at a file and the write, an agent that
// lives puts something else in its place, or in that of the directory that it is in.
func TestEditsAreWrittenWhereTheyWereShown(t *testing.T) {
	type edit struct {
		find  func(path string) (func() error, error)
		isNew bool
	}
	edits := map[string]edit{
		"an edit": {func(path string) (func() error, error) {
			e, err := findEdit("file", path, 1000)
			e.after = []byte("changed")
			return e.writeFile, err
		}, false},
		"a new file": {func(path string) (func() error, error) {
			e, err := findEdit("file", path, 1000)
			e.after = []byte("changed")
			return e.writeFile, err
		}, true},
		"a plan's lockfile": {func(path string) (func() error, error) {
			target, err := newLockTarget("/", path, anyLock(), true)
			return func() error { return target.writeLockfile([]byte("changed")) }, err
		}, false},
		"a plan's new lockfile": {func(path string) (func() error, error) {
			target, err := newLockTarget("/", path, anyLock(), true)
			return func() error { return target.writeLockfile([]byte("changed")) }, err
		}, true},
	}
	swaps := map[string]func(dir, file, victim string) error{
		"a link to a file": func(_, file, victim string) error { return errors.Join(gone(file), os.Symlink(victim+"/file", file)) },
		"another file": func(_, file, _ string) error {
			return errors.Join(gone(file), os.WriteFile(file, []byte("text"), 0o600))
		},
		"a pipe":            func(_, file, _ string) error { return errors.Join(gone(file), unix.Mkfifo(file, 0o600)) },
		"a directory":       func(_, file, _ string) error { return errors.Join(gone(file), os.Mkdir(file, 0o700)) },
		"a link on the way": func(dir, _, victim string) error { return errors.Join(gone(dir), os.Symlink(victim, dir)) },
		"a directory on the way": func(dir, _, victim string) error {
			return unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, victim, unix.RENAME_EXCHANGE)
		},
	}
	for name, e := range edits {
		for how, swap := range swaps {
			t.Run(name+", "+how, func(t *testing.T) {
				project, _, victim := grounds(t)
				dir := filepath.Join(project, "dir")
				file := filepath.Join(dir, "file")
				fine(t, errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(victim, "file"), []byte("text"), 0o600)))
				if !e.isNew {
					fine(t, os.WriteFile(file, []byte("text"), 0o600))
				}
				write, err := e.find(file)
				fine(t, err)
				fine(t, swap(dir, file, victim))
				if err := write(); err == nil {
					t.Error("it was written")
				}
				for _, at := range []string{filepath.Join(victim, "file"), filepath.Join(dir, "file")} {
					if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
						continue
					}
					if data, err := os.ReadFile(at); err != nil || string(data) != "text" {
						t.Errorf("%s is %q now", at, data)
					}
				}
			})
		}
		t.Run(name, func(t *testing.T) { // the control
			project, _, _ := grounds(t)
			file := filepath.Join(project, "file")
			if !e.isNew {
				fine(t, os.WriteFile(file, []byte("text"), 0o640))
			}
			write, err := e.find(file)
			fine(t, err)
			fine(t, write())
			unchanged(t, file, "changed")
			if info, err := os.Stat(file); err != nil || !e.isNew && info.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// gone takes what has a name away, if something has it.
func gone(path string) error {
	err := os.Rename(path, path+".old")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// TestNewDirectoriesOfClients: a client's configuration gets its directory, and none where a link
// of an agent's leads.
func TestNewDirectoriesOfClients(t *testing.T) {
	project, mine, victim := grounds(t)
	client := mcpClients()[1]
	fine(t, os.Symlink(victim, filepath.Join(project, "to")))
	for path, want := range map[string]bool{mine + "/a/b/config.toml": true, project + "/a/b/config.toml": true, project + "/to/a/config.toml": false} {
		client.project = path
		e, err := mcpInstallFlags{project: true}.planEdit(client, client.entry(testServer))
		if err == nil {
			err = e.writeFile()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 0 {
		t.Errorf("made where the link leads: %v, %v", entries, err)
	}
	if data, err := os.ReadFile(mine + "/a/b/config.toml"); err != nil || !strings.Contains(string(data), "cofferdam") {
		t.Errorf("%q, %v", data, err)
	}
}
