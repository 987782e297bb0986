package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
)

// workplace is a project, and what runs Cofferdam in it with a state of its own.
type workplace struct {
	t            *testing.T
	dir, runtime string
	cofferdam    func(args ...string) (string, error)
}

func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	if testing.Short() {
		t.Skip("makes sandboxes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("makes sandboxes as root")
	}
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "cofferdam"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("needs make build")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &workplace{t: t, dir: filepath.Join(top, "project"), runtime: filepath.Join(top, "run")}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.cofferdam = func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = w.dir
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+filepath.Join(top, "state"), "COFFERDAM_RUNTIME="+w.runtime)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = w.cofferdam("stop", "--force") })
	return w
}

// run runs a shell's line in the project.
func (w *workplace) run(line string, flags ...string) (string, error) {
	args := append([]string{"run", "--template", "host", "--no-project"}, flags...)
	return w.cofferdam(append(args, "--", "sh", "-c", line)...)
}

func (w *workplace) must(out string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// write writes a file as the person does.
func (w *workplace) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// refused tells whether a command was refused because nobody has seen a file.
func (w *workplace) refused(what, name, out string, err error) {
	w.t.Helper()
	if err == nil || !strings.Contains(out, "the "+what+" "+filepath.Join(w.dir, name)) || !strings.Contains(out, "cofferdam project allow ") {
		w.t.Errorf("%s: %v: %s", name, err, out)
	}
}

const (
	strictRules   = "name: p\npackages: { default: deny }\n"
	generousRules = "name: p\npackages: { default: allow }\n"
)

// TestFilesThatDecide: a run that may write in a project rewrites files that later commands are given by flags. They
// decide nothing until a person has seen them. The controls: what the person last used, and has allowed, decides
// without a question, and so does what an agent can't write.
func TestFilesThatDecide(t *testing.T) {
	w := newWorkplace(t)
	writable := []string{"--mount", ".:/w:rw", "--workdir", "/w"}
	w.write("policy.yaml", strictRules)
	w.write("requirements.txt", "six==1.16.0 --hash=sha256:"+strings.Repeat("1", 64)+"\n")
	w.write("ca.pem", "x")
	w.must(w.run("true", "--policy", "policy.yaml", "--lockfile", "requirements.txt")) // they are known by now
	w.must(w.run("echo made > made", writable...))
	w.must(w.run("true", "--policy", "policy.yaml", "--lockfile", "requirements.txt"))
	w.must(w.run("cat policy.yaml", append([]string{"--policy", "policy.yaml"}, writable...)...))

	w.must(w.run("printf 'name: p\\npackages: { default: allow }\\n' > policy.yaml; sed -i s/1.16/1.15/ requirements.txt; echo y > ca.pem; echo name: q > new.yaml", writable...))
	w.write("fine.yaml", strictRules)
	if text, err := os.ReadFile(filepath.Join(w.dir, "policy.yaml")); err != nil || string(text) != generousRules {
		t.Fatalf("the control: the agent wrote %q, %v", text, err)
	}
	out, err := w.run("true", "--policy", "policy.yaml")
	w.refused("policy", "policy.yaml", out, err)
	out, err = w.run("true", "--policy", "new.yaml")
	w.refused("policy", "new.yaml", out, err)
	out, err = w.run("true", "--lockfile", "requirements.txt")
	w.refused("lockfile", "requirements.txt", out, err)
	out, err = w.cofferdam("policy", "put", "p", "policy.yaml")
	w.refused("policy", "policy.yaml", out, err)
	out, err = w.cofferdam("--host", "https://127.0.0.1:1", "--ca", "ca.pem", "list")
	w.refused("CA file", "ca.pem", out, err)
	out, err = w.cofferdam("audit", "verify", "--key", "ca.pem")
	w.refused("file of public keys", "ca.pem", out, err)
	w.askByAPI()

	// A person looks at them, and says so.
	w.must(w.cofferdam("policy", "check", "policy.yaml"))
	if out, err := w.cofferdam("project", "allow", "policy.yaml"); err == nil || !strings.Contains(out, "--digest "+vouched.Digest([]byte(generousRules))) {
		t.Errorf("nobody can be asked: %v: %s", err, out)
	}
	if out, err := w.cofferdam("project", "allow", "--digest", vouched.Digest([]byte(strictRules)), "policy.yaml"); err == nil {
		t.Errorf("another one was allowed: %s", out)
	}
	w.must(w.cofferdam("project", "allow", "--digest", vouched.Digest([]byte(generousRules)), "policy.yaml"))
	w.must(w.run("true", append([]string{"--policy", "policy.yaml"}, writable...)...))
	w.must(w.cofferdam("project", "forbid", "policy.yaml"))
	out, err = w.run("true", "--policy", "policy.yaml")
	w.refused("policy", "policy.yaml", out, err)
}

// askByAPI asks the daemon for a sandbox as a client of its socket does, which reads its files by itself.
func (w *workplace) askByAPI() {
	w.t.Helper()
	c, err := client.At("unix://"+filepath.Join(w.runtime, "daemon.sock"), "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	for name, document := range map[string]string{"policy.yaml": generousRules, "": generousRules} {
		asked := api.Policy{Document: []byte(document)}
		if name != "" {
			asked.Source = filepath.Join(w.dir, name)
		}
		made, err := c.CreateSandbox(w.t.Context(), api.CreateSandbox{Template: "host", Policy: asked})
		if (err != nil) != (name != "") || err != nil && !strings.Contains(err.Error(), "cofferdam project allow ") {
			w.t.Errorf("%q by the API: %v", name, err)
		}
		if err == nil {
			if err := c.DestroySandbox(w.t.Context(), made.ID); err != nil {
				w.t.Error(err)
			}
		}
	}
}

// TestAPolicyReplacedWhileItIsCovered: an editor replaces a policy while a run has it covered, and the run writes to
// what is there then. The control: it is written in place, where it stays covered.
func TestAPolicyReplacedWhileItIsCovered(t *testing.T) {
	w := newWorkplace(t)
	for _, replaced := range []bool{false, true} {
		w.write("policy.yaml", strictRules)
		id, err := w.cofferdam("create", "--template", "host", "--policy", "policy.yaml", "--mount", ".:/w:rw")
		w.must(id, err)
		words := strings.Fields(id)
		id = words[len(words)-1]
		if replaced {
			w.write("policy.new", strictRules+"# another\n")
			err = os.Rename(filepath.Join(w.dir, "policy.new"), filepath.Join(w.dir, "policy.yaml"))
		} else {
			w.write("policy.yaml", strictRules+"# another\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.cofferdam("exec", id, "--", "sh", "-c", "echo '# an agent' >> /w/policy.yaml")
		if (err == nil) != replaced {
			t.Fatalf("the control: replaced %v, and the agent writes it: %v: %s", replaced, err, out)
		}
		out, err = w.run("true", "--policy", "policy.yaml")
		if (err != nil) != replaced {
			t.Errorf("replaced %v: %v: %s", replaced, err, out)
		}
		w.must(w.cofferdam("rm", id))
		if out, err = w.run("true", "--policy", "policy.yaml"); (err != nil) != replaced {
			t.Errorf("replaced %v, and the sandbox is gone: %v: %s", replaced, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "policy.yaml")); errors.Is(err, os.ErrNotExist) {
		t.Error("there is no policy")
	}
}

// TestFilesThatDecideByALinkOfTheShell: the shell says that it is in a directory that a link leads to. A person is asked
// about a file, and the daemon about what it is sent, by one name, so that what is allowed by that decides. The control:
// what an agent wrote since then does not.
func TestFilesThatDecideByALinkOfTheShell(t *testing.T) {
	w := newWorkplace(t)
	link := filepath.Join(filepath.Dir(w.dir), "link")
	if err := os.Symlink(w.dir, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PWD", link)
	w.write("requirements.txt", "six==1.16.0 --hash=sha256:"+strings.Repeat("1", 64)+"\n")
	writable := []string{"--mount", ".:/w:rw", "--workdir", "/w"}
	w.must(w.run("printf 'name: p\\npackages: { default: allow }\\n' > policy.yaml", writable...))
	given := []string{"--policy", "policy.yaml", "--lockfile", "requirements.txt"}
	for name, what := range map[string]string{"policy.yaml": "policy", "requirements.txt": "lockfile"} {
		out, err := w.run("true", "--"+what, name)
		w.refused(what, name, out, err)
		text, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		w.must(w.cofferdam("project", "allow", "--digest", vouched.Digest(text), name))
	}
	w.must(w.run("true", given...))
	w.must(w.run("echo '# more' >> policy.yaml", writable...))
	out, err := w.run("true", given...)
	w.refused("policy", "policy.yaml", out, err)
}

// TestFilesThatDecideMountedByThemselves: a run may write one file, which a later command is given by a flag. The
// control: a file beside it, which a person changed.
func TestFilesThatDecideMountedByThemselves(t *testing.T) {
	w := newWorkplace(t)
	for _, name := range []string{"policy.yaml", "beside.yaml"} {
		w.write(name, strictRules)
		w.must(w.run("true", "--policy", name))
	}
	w.must(w.run("echo '# an agent' >> /p.yaml", "--mount", "policy.yaml:/p.yaml:rw"))
	w.write("beside.yaml", generousRules)
	w.must(w.run("true", "--policy", "beside.yaml"))
	out, err := w.run("true", "--policy", "policy.yaml")
	w.refused("policy", "policy.yaml", out, err)
}

// TestAnIgnoreFileThatIsGone: an agent, or a person, removes an ignore file that has hidden something. Nothing is shown before a
// person has said that it may be gone, and they can. The control: they have said it of another text.
func TestAnIgnoreFileThatIsGone(t *testing.T) {
	w := newWorkplace(t)
	writable := []string{"--mount", ".:/w:rw", "--workdir", "/w"}
	w.write("key.pem", "key")
	w.must(w.run("true", writable...)) // where there is no ignore file a run can make one
	w.write(".aiignore", "key.pem\n")
	w.must(w.run("! grep key key.pem", writable...))
	if err := os.Remove(filepath.Join(w.dir, ".aiignore")); err != nil {
		t.Fatal(err)
	}
	out, err := w.run("true", writable...)
	w.refused("ignore file", ".aiignore", out, err)
	if out, err := w.cofferdam("project", "allow", "--digest", vouched.Digest([]byte("other\n")), ".aiignore"); err == nil {
		t.Errorf("the control: %s", out)
	}
	w.must(w.cofferdam("project", "allow", "--digest", vouched.Digest(nil), ".aiignore"))
	w.must(w.run("grep key key.pem", writable...))
}

// TestPublicKeysAreReadOnce: keys are read by what asks about them, or are the keys themselves, whatever is put there meanwhile.
func TestPublicKeysAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{filepath.Join(dir, "none"): "does not exist", dir: "is not a file", "a+b": "", filepath.Join(dir, "a+b"): ""} {
		_, err := publicKeys(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
