package uv

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/pip"
)

const sum = "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f"

func TestConformance(t *testing.T) {
	t.Parallel()
	requirements := []byte("rich==13.7.1 --hash=sha256:" + sum + "\n")
	lock := []byte("version = 1\nrequires-python = \">=3.11\"\n\n[[package]]\nname = \"rich\"\nversion = \"13.7.1\"\nsource = { registry = \"https://index.example/simple\" }\nwheels = [\n    { url = \"https://files.example/rich-13.7.1-py3-none-any.whl\", hash = \"sha256:" + sum + "\", size = 1 },\n]\n")
	installertest.Run(t, installertest.Sample{
		Installer: New(),
		Asked:     []string{"uv add x", "uv pip install --system x", "python -m uv add x"},
		Rewrites: []installertest.Rewrite{
			{Command: "uv pip install --system -c c.txt -r in.txt rich>=13", Resolver: "uv pip", Lines: []string{
				`printf '%s\n' 'rich>=13' >"$out/wanted.in" || exit`,
				`uv pip compile -q --generate-hashes --no-header --no-annotate -c c.txt -o "$out/requirements.txt" "$out/wanted.in" in.txt || exit`,
			}, Not: "--system"},
			{Command: "uv add rich --frozen", Resolver: "uv", Lines: []string{emptyProject, "uv add --no-sync rich || exit"}, Not: "--frozen --no-sync"},
			{Command: "uv sync --group dev -U", Resolver: "uv", Lines: []string{
				"uv lock -U || exit",
				`uv export -q --frozen --no-hashes --no-header --no-annotate --no-emit-workspace --group=dev >"$out/wanted.in" || exit`,
			}, Not: "--universal"},
			{Command: "uv sync --frozen", Resolver: "uv", Not: "uv lock"},
			{Command: "uv lock", Resolver: "uv", Lines: []string{"uv lock || exit"}},
		},
		Refused: map[string]string{
			"uv pip install --what rich": `the option "--what"`, "uv pip install --system": "names no package",
			"uv sync rich": "takes no packages", "uv add --script x.py rich": "a script's own requirements",
		},
		Others: []string{"uv pip list", "uv run x", "uv pip"},
		Results: []installertest.Result{
			{Command: "uv pip install rich", Documents: installer.Documents{pip.RequirementsFile: requirements}, Releases: []string{"rich 13.7.1"}, LockNames: []string{"a/lock.txt"}},
			{Command: "uv add rich", Documents: installer.Documents{pip.RequirementsFile: requirements, lockName: lock}, Releases: []string{"rich 13.7.1"}},
		},
	})
}

func TestTooManyReleases(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range installer.MaxChoices + 1 {
		fmt.Fprintf(&b, "p%d==1 --hash=sha256:%s\n", i, sum)
	}
	if got, err := pipResolver().Result(installer.Documents{pip.RequirementsFile: []byte(b.String())}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%d releases gave %d choices, %v", installer.MaxChoices+1, len(got.Choices), err)
	}
}

// TestBuiltIn: nothing names the registry that the client asks anyway.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	r := installer.Registry{Index: "https://index.example/simple/"}
	if got := New().Mirror(r)["UV_DEFAULT_INDEX"]; got != r.Index {
		t.Errorf("another registry is named %q", got)
	}
	r.BuiltIn = true
	if env := New().Mirror(r); env != nil {
		t.Errorf("the client's own is named: %v", env)
	}
}
