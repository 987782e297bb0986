package discover_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// clean is this machine's environment without what the tests are about, and
// with a home of its own; extra pairs go on top.
func clean(t *testing.T, extra ...string) []string {
	t.Helper()
	home := t.TempDir()
	// Else a go that has told its answer still writes there, while the test's end removes it.
	put(t, filepath.Join(home, ".config", "go", "telemetry", "mode"), "off")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PIP_CONFIG_FILE=" + os.DevNull}
	return append(env, extra...)
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDefault asks the real pip for its compiled-in index.
func TestDefault(t *testing.T) {
	t.Parallel()
	c, err := all.Clients().Host(t.Context(), pkgref.Python, clean(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.Index, "https://") || !strings.HasSuffix(c.Index, "/simple/") || c.Ecosystem != pkgref.Python {
		t.Errorf("%+v", c)
	}
	if c.Username+c.Password+c.Proxy != "" || c.CAPEM != nil || c.Source != "pip's default" {
		t.Errorf("more than was set: %+v", discover.Redacted(c))
	}
}

func TestPipsOwnSettings(t *testing.T) {
	t.Parallel()
	file := put(t, filepath.Join(t.TempDir(), "pip.conf"), `[global]
index-url = https://files.example/simple
proxy = http://proxy.example:3128
[install]
index-url = https://u%40corp:s%2Fcret@index.example/pypi/simple?x=1#y
`)
	netrc := put(t, filepath.Join(t.TempDir(), "netrc"), "machine env.example login ci password hunter2\n")
	for name, c := range map[string]struct {
		extra []string
		want  upstream.Config
	}{
		"the command's section before the global one": {
			[]string{"PIP_CONFIG_FILE=" + file},
			upstream.Config{Index: "https://index.example/pypi/simple/", Username: "u@corp", Password: "s/cret", Proxy: "http://proxy.example:3128"},
		},
		"the environment before the file": {
			[]string{"PIP_CONFIG_FILE=" + file, "PIP_INDEX_URL=https://env.example/simple/", "NETRC=" + netrc},
			upstream.Config{Index: "https://env.example/simple/", Username: "ci", Password: "hunter2", Proxy: "http://proxy.example:3128"},
		},
		"uv's, where pip has none": {
			[]string{"UV_DEFAULT_INDEX=http://index.example:8080", "http_proxy=http://proxy.example"},
			upstream.Config{Index: "http://index.example:8080/", Proxy: "http://proxy.example"},
		},
		"pip's before uv's": {
			[]string{"UV_DEFAULT_INDEX=https://files.example", "PIP_INDEX_URL=https://index.example/"},
			upstream.Config{Index: "https://index.example/"},
		},
		"no proxy for this host": {
			[]string{"PIP_INDEX_URL=https://index.example/", "HTTPS_PROXY=http://proxy.example", "NO_PROXY=.example"},
			upstream.Config{Index: "https://index.example/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := all.Clients().Host(t.Context(), pkgref.Python, clean(t, c.extra...))
			if err != nil {
				t.Fatal(err)
			}
			if got.Index != c.want.Index || got.Username != c.want.Username || got.Password != c.want.Password || got.Proxy != c.want.Proxy {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		want error
	}{
		"no python":      {[]string{"PATH=" + t.TempDir()}, nil}, // finds the system's, which may lack pip
		"a file index":   {clean(t, "PIP_INDEX_URL=file:///srv/simple"), fault.ErrInvalid},
		"no host":        {clean(t, "PIP_INDEX_URL=https:///simple"), fault.ErrInvalid},
		"no index":       {clean(t, "PIP_NO_INDEX=1"), fault.ErrUnavailable},
		"a lost CA file": {clean(t, "PIP_CERT=/nonexistent/ca.pem"), fault.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := all.Clients().Host(t.Context(), pkgref.Python, c.env)
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestNoForeignModules: a folder that an agent can write must not lend its
// modules to the host's python. The control shows that it would.
func TestNoForeignModules(t *testing.T) {
	dir := t.TempDir()
	proof := filepath.Join(dir, "proof")
	put(t, filepath.Join(dir, "pip", "__init__.py"), "open("+strconv.Quote(proof)+", 'w').close()\n")
	t.Chdir(dir)
	if _, err := all.Clients().Host(t.Context(), pkgref.Python, clean(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Fatal("a pip of the working directory was run")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	control := exec.CommandContext(t.Context(), python, "-c", "import pip") // pip asked without care
	control.Dir = dir
	if err := control.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(proof); err != nil {
		t.Error("positive control: the module would not have been found anyway")
	}
}

func TestExtraIndexIsSaid(t *testing.T) {
	t.Parallel()
	c, err := all.Clients().Host(t.Context(), pkgref.Python, clean(t, "PIP_EXTRA_INDEX_URL=https://files.example/"))
	if err != nil || !strings.Contains(c.Source, "extra-index-url") {
		t.Errorf("%q %v", c.Source, err)
	}
}

func TestSecretsStay(t *testing.T) {
	t.Parallel()
	c, err := discover.Configured(discover.Named{Ecosystem: pkgref.Python, Index: "https://user:hunter2@index.example/simple", Proxy: "http://p:hunter2@proxy.example:1"}, nil)
	if err != nil || c.Password != "hunter2" {
		t.Fatal(c, err)
	}
	raw, err := json.Marshal(discover.Redacted(c))
	if err != nil || strings.Contains(string(raw), "hunter2") || !strings.Contains(string(raw), "index.example") {
		t.Errorf("%s %v", raw, err)
	}
	_, err = discover.Configured(discover.Named{Ecosystem: pkgref.Python, Index: "ftp://user:hunter2@index.example/"}, nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an error tells the password: %v", err)
	}
}

func TestFromTemplate(t *testing.T) {
	t.Parallel()
	answer := func(text string, err error) func(context.Context, []string) ([]byte, error) {
		return func(context.Context, []string) ([]byte, error) { return []byte(text), err }
	}
	c, err := all.Clients().FromTemplate(t.Context(), pkgref.Python, nil, answer("https://index.example/simple\n", nil))
	if err != nil || c.Index != "https://index.example/simple/" {
		t.Errorf("%+v %v", c, err)
	}
	for _, text := range []string{"", "http://index.example/", "https://a:b@index.example/", "Traceback...", strings.Repeat("x", discover.MaxAnswer+1)} {
		if _, err := all.Clients().FromTemplate(t.Context(), pkgref.Python, nil, answer(text, nil)); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := all.Clients().FromTemplate(t.Context(), pkgref.Python, nil, answer("", errors.New("no python"))); !errors.Is(err, fault.ErrUnavailable) {
		t.Error(err)
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "upstreams")
	env := clean(t, "PIP_INDEX_URL=https://u:p@index.example/simple/")
	current := func(env []string) (upstream.Config, error) {
		f := all.Clients().Current(t.Context(), dir, env, pkgref.Python)
		if len(f.Missing) > 0 {
			return upstream.Config{}, f.Missing[0].Why
		}
		return f.Upstreams[0], nil
	}
	first, err := current(env)
	if err != nil {
		t.Fatal(err)
	}
	first.FileHosts = []string{"files.example"}
	if err := discover.Save(dir, first); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "upstream-python.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	// The same inputs: nobody is asked, and what was learnt is there.
	marked := first
	marked.Source = "kept"
	if err := discover.Save(dir, marked); err != nil {
		t.Fatal(err)
	}
	again, err := current(env)
	if err != nil || again.Source != "kept" || len(again.FileHosts) != 1 || again.Password != "p" {
		t.Errorf("%+v %v", again, err)
	}
	// Another index: asked again, and the old file hosts are not carried over.
	moved, err := current(append(env, "PIP_INDEX_URL=https://files.example/simple/"))
	if err != nil || moved.Index != "https://files.example/simple/" || moved.FileHosts != nil {
		t.Errorf("%+v %v", moved, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := current(env); !errors.Is(err, fault.ErrForbidden) {
		t.Error(err)
	}
	put(t, path, "{")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := current(env); !errors.Is(err, fault.ErrUnavailable) {
		t.Error(err)
	}
}
