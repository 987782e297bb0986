package executable_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestEnvironment has nothing in it by which a program would load, or believe, what a sandbox could write.
// The controls are the same variables with places elsewhere.
func TestEnvironment(t *testing.T) {
	project, elsewhere := t.TempDir(), t.TempDir()
	trees := []hostpath.Tree{{Path: project}}
	for _, form := range []string{
		"BASH_ENV=DIR/env.sh", "PERL5LIB=DIR/lib:/usr/lib", "PERL5OPT=-IDIR -Mx", "NODE_OPTIONS=--require DIR/hook.js", "NODE_OPTIONS=--require=DIR/hook.js",
		"PIP_CONFIG_FILE=DIR/pip.conf", "NPM_CONFIG_USERCONFIG=DIR/.npmrc", "GOENV=DIR/env", "SSL_CERT_FILE=DIR/ca.pem", "GIT_SSH_COMMAND=ssh -F 'DIR/config'",
		"LD_PRELOAD=DIR/x.so", "VIRTUAL_ENV=DIR/.venv", "EXTRA=a,DIR/b", "JAVA_TOOL_OPTIONS=-javaagent:DIR/a.jar", "NAME=@DIR/x", "SSH_AUTH_SOCK=DIR/not-there",
	} {
		theirs, ours := strings.ReplaceAll(form, "DIR", project), strings.ReplaceAll(form, "DIR", elsewhere)
		if got := executable.Environment([]string{theirs, ours, "X=1"}, trees); !slices.Equal(got, []string{ours, "X=1"}) {
			t.Errorf("%s: %q", form, got)
		}
	}
	if got := executable.Environment([]string{"HOME=" + project}, trees); !slices.Equal(got, []string{"HOME=/nonexistent"}) {
		t.Errorf("a home directory is %q", got)
	}
	if got := executable.Environment([]string{"HOME=" + elsewhere}, []hostpath.Tree{{Path: filepath.Join(elsewhere, ".local")}}); !slices.Contains(got, "PYTHONNOUSERSITE=1") {
		t.Errorf("modules of the user are loaded: %q", got)
	}
}

// copyOf makes a copy of a program of the host.
func copyOf(t *testing.T, name, to string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(text))
}

func digest(t *testing.T, s *executable.Sums, argv ...string) string {
	t.Helper()
	p, err := s.Open(argv, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Digest
}

// TestDigest changes with each file that decides what a command does, and with no other.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"inner", "data", "other"} {
		write(t, in(name), "#!/bin/sh\n")
	}
	write(t, in("script"), "#!"+in("inner")+" -x\necho\n")
	argv := []string{in("script"), "-c", in("data"), "no-file", dir}
	if got, want := executable.Files(argv, ""), []string{in("script"), in("inner"), "/bin/sh", in("data")}; !slices.Equal(got, want) {
		t.Errorf("it is decided by %q, not %q", got, want)
	}
	if got := executable.Files([]string{"/bin/sh", "data"}, dir); !slices.Contains(got, in("data")) {
		t.Errorf("a file in the program's directory is not among %q", got)
	}
	var sums executable.Sums
	before := digest(t, &sums, argv...)
	if again := digest(t, &sums, argv...); again != before || !strings.HasPrefix(before, "sha256:") {
		t.Errorf("%s, and then %s", before, again)
	}
	for _, name := range []string{"script", "inner", "data"} {
		text, err := os.ReadFile(in(name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, in(name), string(text)+"# another\n")
		after := digest(t, &sums, argv...)
		if after == before {
			t.Errorf("%s is another, and the digest is the same", name)
		}
		before = after
	}
	write(t, in("other"), "another")
	if digest(t, &sums, argv...) != before {
		t.Error("a file that has nothing to do with it counts")
	}
}

// TestWhatWasOpenedIsStarted, whatever has its name by then.
func TestWhatWasOpenedIsStarted(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "program")
	copyOf(t, "/bin/true", name)
	var sums executable.Sums
	p, err := sums.Open([]string{name}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	copyOf(t, "/bin/false", name+"2")
	if err := os.Rename(name+"2", name); err != nil {
		t.Fatal(err)
	}
	if err := p.Command().Run(); err != nil {
		t.Errorf("what was opened did not run: %v", err)
	}
	now, err := sums.Open([]string{name}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	if err := now.Command().Run(); err == nil || now.Digest == p.Digest { // the control
		t.Error("the other program is not there")
	}
}

// TestProgramsThatASandboxMayWrite are not opened, by whichever way they lie there.
func TestProgramsThatASandboxMayWrite(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, outside} {
		write(t, filepath.Join(d, "program"), "#!/bin/sh\n")
		write(t, filepath.Join(d, "data"), "x")
	}
	write(t, filepath.Join(outside, "script"), "#!"+filepath.Join(dir, "program")+"\n")
	for link, to := range map[string]string{filepath.Join(dir, "link"): filepath.Join(outside, "program"), filepath.Join(outside, "link"): filepath.Join(dir, "program")} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	at, err := hostpath.Open(dir, hostpath.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	trees := []hostpath.Tree{{Path: dir, ID: at.ID}}
	var sums executable.Sums
	for name, argv := range map[string][]string{
		"the program": {filepath.Join(dir, "program")}, "a link there": {filepath.Join(dir, "link")}, "a link to there": {filepath.Join(outside, "link")},
		"a script's interpreter": {filepath.Join(outside, "script")}, "an argument": {"/bin/sh", filepath.Join(dir, "data")},
	} {
		if p, err := sums.Open(argv, "", trees); err == nil {
			p.Close()
			t.Errorf("%s is opened", name)
		}
		p, err := sums.Open(argv, "", nil) // the control
		if err != nil {
			t.Errorf("%s is not opened where nobody may write: %v", name, err)
			continue
		}
		p.Close()
	}
	if p, err := sums.Open([]string{"/bin/sh"}, "", []hostpath.Tree{{Path: "/"}}); err == nil {
		p.Close()
		t.Error("one is opened although nobody knows where sandboxes may write")
	}
	for _, argv := range [][]string{{filepath.Join(dir, "nothing")}, {dir}} {
		if p, err := sums.Open(argv, "", nil); err == nil {
			p.Close()
			t.Errorf("%q is opened", argv)
		}
	}
}

// TestProgramsThatAnotherUserMayWrite are not run with this process's rights. The controls are root's own.
func TestProgramsThatAnotherUserMayWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can make another user's files")
	}
	dir := t.TempDir()
	ours, theirs, script := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs"), filepath.Join(dir, "script")
	write(t, ours, "#!/bin/sh\n")
	write(t, theirs, "#!/bin/sh\n")
	write(t, script, "#!"+theirs+"\n")
	if err := os.Chown(theirs, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		argv []string
		ok   bool
	}{
		"control: root's":        {[]string{ours}, true},
		"control: the system's":  {[]string{"/bin/sh", ours}, true},
		"the program":            {[]string{theirs}, false},
		"a script's interpreter": {[]string{script}, false},
		"an argument":            {[]string{"/bin/sh", theirs}, false},
	} {
		if err := executable.CheckStrangers(c.argv, ""); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlaces are where a command looks for what it runs; none may be where a sandbox may write.
func TestPlaces(t *testing.T) {
	project, elsewhere := t.TempDir(), t.TempDir()
	deep := filepath.Join(project, "deep")
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := hostpath.Open(project, hostpath.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	writable := []hostpath.Tree{{Path: project, ID: at.ID}}
	for name, c := range map[string]struct {
		argv    []string
		dir     string
		env     map[string]string
		refused bool
	}{
		"a module of the directory":     {argv: []string{"/usr/bin/python3", "-m", "tool"}, dir: project, refused: true},
		"a package that is a directory": {argv: []string{"/usr/bin/python3", deep}, refused: true},
		"one below the directory":       {argv: []string{"/usr/bin/python3", "deep"}, dir: project, refused: true},
		"what an option is given":       {argv: []string{"/usr/bin/npx", "--prefix=" + project, "x"}, refused: true},
		"where commands are":            {argv: []string{"/bin/sh", "-c", "x"}, env: map[string]string{"PATH": "/usr/bin:" + deep}, refused: true},
		"where modules are":             {argv: []string{"/usr/bin/python3", "-m", "x"}, env: map[string]string{"PYTHONPATH": project}, refused: true},
		"elsewhere":                     {argv: []string{"/usr/bin/python3", "-m", "tool", elsewhere, "--a=" + elsewhere}, dir: elsewhere, env: map[string]string{"PATH": "/usr/bin:/bin"}},
		"a text that names nothing":     {argv: []string{"/usr/bin/python3", "x=" + project + "/absent"}, env: map[string]string{"PROJECT": project}},
		"above it":                      {argv: []string{"/usr/bin/true"}, dir: "/"},
	} {
		places := executable.Places(c.argv, c.dir, c.env)
		if err := executable.CheckPlaces(places, writable); (err != nil) != c.refused {
			t.Errorf("%s: %v (%q)", name, err, places)
		}
		if err := executable.CheckPlaces(places, nil); err != nil {
			t.Errorf("%s, where no sandbox may write: %v", name, err)
		}
	}
	environment := []string{"A=" + project, "PATH=" + deep + ":/usr/bin:" + project + "/later:bin:" + elsewhere, "NODE_PATH=" + project}
	if got, want := executable.Environment(environment, writable), []string{"PATH=/usr/bin:" + elsewhere, "NODE_PATH="}; !slices.Equal(got, want) {
		t.Errorf("the environment is %q, not %q", got, want)
	}
	if got := executable.Environment(environment, nil); !slices.Equal(got, environment) {
		t.Errorf("where no sandbox may write it is %q", got)
	}
	if got := executable.Files([]string{"/bin/sh", "--rcfile=/etc/passwd"}, ""); !slices.Contains(got, "/etc/passwd") {
		t.Errorf("the file that an option is given is not among %q", got)
	}
}
