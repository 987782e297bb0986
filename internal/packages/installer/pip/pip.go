// Package pip is pip, as an installer: it resolves by itself and reports what it would
// install.
package pip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// RequirementsFile is what a list of requirements with hashes is called.
const RequirementsFile = "requirements.txt"

// IsRequirements tells by its name whether a file is such a list.
func IsRequirements(base string) bool { return strings.HasSuffix(base, ".txt") }

// reportFile is pip's installation report.
const reportFile = "report.json"

type client struct{}

// New returns the installer.
func New() installer.Installer { return client{} }

func (client) Name() string                { return "pip" }
func (client) Ecosystem() pkgref.Ecosystem { return pkgref.Python }
func (client) Plannable() []string         { return []string{"pip install", "python3 -m pip install"} }

// Asks implements installer.Installer.
func (client) Asks(argv []string) ([]string, bool) {
	program, words := Module(argv)
	if program != "pip" {
		return nil, false
	}
	return Installed(words)
}

// Installed returns what follows pip's own commands that fetch by name.
func Installed(words []string) ([]string, bool) {
	return installer.Behind(words, "install", "download", "wheel")
}

// Module is the program that a command starts, which may be a module of Python's, and its
// words.
func Module(argv []string) (program string, words []string) {
	program = installer.Program(argv)
	switch {
	case program == "":
		return "", nil
	case program == "python" && len(argv) > 3 && argv[1] == "-m":
		return argv[2], argv[3:]
	}
	return program, argv[1:]
}

func (client) Settings(s installer.Surroundings) map[string]string {
	return map[string]string{
		"PIP_CERT":                      s.Bundle,
		"PIP_DEFAULT_TIMEOUT":           strconv.Itoa(s.Timeout),
		"PIP_RETRIES":                   "1", // a refusal is one
		"PIP_DISABLE_PIP_VERSION_CHECK": "1",
		"PIP_BREAK_SYSTEM_PACKAGES":     "1", // the whole system is the sandbox's own
		"PIP_ROOT_USER_ACTION":          "ignore",
		"PIP_NO_INPUT":                  "1",
	}
}

func (client) Mirror(r installer.Registry) map[string]string {
	if r.BuiltIn {
		return nil
	}
	return map[string]string{"PIP_INDEX_URL": r.Index}
}

func (client) Unbuilt() map[string]string {
	return map[string]string{"PIP_ONLY_BINARY": ":all:"}
}

func (client) Install(wanted []installer.Wanted) []string {
	argv := []string{"pip", "install"}
	for _, w := range wanted {
		argv = append(argv, w.Word("=="))
	}
	return argv
}

func resolver() installer.Resolver {
	return installer.Resolver{
		Name: "pip", Ecosystem: pkgref.Python, Documents: []string{reportFile},
		Read:     installer.Only(reportFile, readReport),
		LockName: RequirementsFile, LockFits: IsRequirements, LockRule: "requirements with hashes, whose name ends in .txt",
		Lock: func(_ installer.Documents, result installer.Result) ([]byte, error) {
			return requirements(result), nil
		},
		Look: Look,
	}
}

// Rewrite implements installer.Installer: pip resolves by itself with --dry-run.
func (client) Rewrite(argv []string, p installer.Project) (installer.Rewrite, bool, error) {
	own, words := called(argv)
	if len(words) == 0 || words[0] != "install" {
		return installer.Rewrite{}, false, nil
	}
	words = installer.Without(words[1:], []string{"--dry-run"}, []string{"--report"})
	if err := installer.RefuseAny("pip install", words, "it asks for help", "-h", "--help"); err != nil {
		return installer.Rewrite{}, true, err
	}
	line := installer.Quoted(append(slices.Clone(own), "install", "--dry-run", "--ignore-installed", "--no-input")) +
		` --report "$out/report.json" ` + installer.Quoted(words) + " || exit"
	return installer.Rewrite{Resolver: resolver(), Argv: p.Script(line, `emit `+reportFile+` "$out/report.json"`)}, true, nil
}

// called splits a command into how pip itself is called and the words for it; both are
// nil where it is another program.
func called(argv []string) (own, words []string) {
	switch program := installer.Program(argv); {
	case program == "pip":
		return argv[:1], argv[1:]
	case program == "python" && len(argv) > 2 && argv[1] == "-m" && argv[2] == "pip":
		return argv[:3], argv[3:]
	}
	return nil, nil
}

// requirements writes pip's requirements with hashes.
func requirements(result installer.Result) []byte {
	var b strings.Builder
	for _, c := range result.Choices {
		fmt.Fprintf(&b, "%s==%s", c.Name, c.Version)
		for _, d := range slices.Sorted(slices.Values(c.Digests)) {
			fmt.Fprintf(&b, " \\\n    --hash=%s", d)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// ReadsUnasked implements installer.ProjectReader: pip reads a project's files where a word names its directory.
func (client) ReadsUnasked(argv []string) []string {
	if !slices.Contains(argv, ".") {
		return nil
	}
	return []string{"pyproject.toml", "setup.py"}
}
