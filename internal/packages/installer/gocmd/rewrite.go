package gocmd

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// keepSum puts the project's go.sum aside: what is in it and was not fetched is
// no part of the plan.
const keepSum = `[ -f go.sum ] && cp go.sum "$out/before"`

func goSums() []string {
	return []string{"emit " + sumFile + " go.sum", "emit " + sumBefore + ` "$out/before"`}
}

// rewriteGet runs the command itself in the copy: it changes go.mod and go.sum, and
// fetches the modules that the packages are in.
func rewriteGet(words []string, p installer.Project) (installer.Rewrite, bool, error) {
	if err := installer.RefuseAny("go get", words, "the module can't be another folder's", "-C"); err != nil {
		return installer.Rewrite{}, true, err
	}
	lines := []string{keepSum}
	if p.Top == "" {
		lines = append(lines, emptyModule)
	}
	return installer.Rewrite{Resolver: sumsResolver(), Argv: p.Script(slices.Concat(lines, []string{installer.Line(append([]string{"go", "get"}, words...)...)}, goSums())...)}, true, nil
}

// emptyModule stands for a module that only another sandbox has: what its go.mod requires
// is not known, and what is asked for can be resolved all the same.
const emptyModule = "[ -f go.mod ] || go mod init plan.invalid/plan 2>/dev/null || exit"

// goInstall resolves "package@version" in an empty module, and what has no
// version in the project's copy. Nothing is built.
func goInstall(words []string, p installer.Project) (installer.Rewrite, bool, error) {
	known := installer.Options{
		Values: []string{"-tags", "-ldflags", "-gcflags", "-asmflags", "-mod", "-modfile", "-p", "-o", "-buildmode", "-buildvcs", "-trimpath", "-overlay", "-pgo"},
		Flags:  []string{"-v", "-x", "-n", "-a", "-race", "-trimpath", "-buildvcs", "-work"},
	}
	parsed, err := known.Parse("go install", words)
	if err != nil {
		return installer.Rewrite{}, true, err
	}
	var packages, tags []string
	versions := false
	for _, o := range parsed {
		switch o.Name {
		case "":
			packages = append(packages, o.Value)
			versions = versions || strings.Contains(o.Value, "@")
		case "-tags":
			tags = []string{"-tags", o.Value}
		}
	}
	resolve := []string{keepSum, installer.Quoted(slices.Concat([]string{"go", "list", "-deps"}, tags, packages)) + " >/dev/null || exit"}
	if versions {
		resolve = []string{
			`mkdir "$work/.cofferdam-plan" && cd "$work/.cofferdam-plan" || exit 125`,
			"go mod init plan.invalid/plan 2>/dev/null || exit",
			installer.Line(slices.Concat([]string{"go", "get"}, tags, packages)...),
		}
	}
	return installer.Rewrite{Resolver: sumsResolver(), Argv: p.Script(slices.Concat(resolve, goSums())...)}, true, nil
}

// goModDownload runs the command itself in the copy, and lists what it fetched.
func goModDownload(words []string, p installer.Project) (installer.Rewrite, bool, error) {
	words = installer.Without(words, []string{"-json", "-x"}, nil)
	if err := installer.RefuseAny("go mod download", words, "it is not understood", "-C", "-reuse"); err != nil {
		return installer.Rewrite{}, true, err
	}
	list := installer.Quoted(append([]string{"go", "mod", "download", "-json"}, words...)) + ` >"$out/download.json" || exit`
	return installer.Rewrite{Resolver: downloads(), Argv: p.Script(slices.Concat([]string{keepSum, list, "emit " + downloadFile + ` "$out/download.json"`}, goSums())...)}, true, nil
}
