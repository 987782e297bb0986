package plan

import (
	"slices"
	"strings"
)

// keepSum puts the project's go.sum aside: what is in it and was not fetched is
// no part of the plan.
const keepSum = `[ -f go.sum ] && cp go.sum "$out/before"`

func goSums() []string {
	return []string{"emit " + frameGoSum + " go.sum", "emit " + frameGoSumBefore + ` "$out/before"`}
}

// goGet runs the command itself in the copy: it changes go.mod and go.sum, and
// fetches the modules that the packages are in.
func goGet(words []string, p Project) (Rewrite, error) {
	if err := refuseAny("go get", words, "the module can't be another folder's", "-C"); err != nil {
		return Rewrite{}, err
	}
	lines := []string{keepSum}
	if p.Top == "" {
		lines = append(lines, emptyModule)
	}
	return Rewrite{Client: GoGet, Argv: p.script(slices.Concat(lines, []string{command(append([]string{"go", "get"}, words...)...)}, goSums())...)}, nil
}

// emptyModule stands for a module that only another sandbox has: what its go.mod requires
// is not known, and what is asked for can be resolved all the same.
const emptyModule = "[ -f go.mod ] || go mod init plan.invalid/plan 2>/dev/null || exit"

// goInstall resolves "package@version" in an empty module, and what has no
// version in the project's copy. Nothing is built.
func goInstall(words []string, p Project) (Rewrite, error) {
	known := options{
		values: []string{"-tags", "-ldflags", "-gcflags", "-asmflags", "-mod", "-modfile", "-p", "-o", "-buildmode", "-buildvcs", "-trimpath", "-overlay", "-pgo"},
		flags:  []string{"-v", "-x", "-n", "-a", "-race", "-trimpath", "-buildvcs", "-work"},
	}
	parsed, err := known.parse("go install", words)
	if err != nil {
		return Rewrite{}, err
	}
	var packages, tags []string
	versions := false
	for _, o := range parsed {
		switch o.name {
		case "":
			packages = append(packages, o.value)
			versions = versions || strings.Contains(o.value, "@")
		case "-tags":
			tags = []string{"-tags", o.value}
		}
	}
	resolve := []string{keepSum, quoted(slices.Concat([]string{"go", "list", "-deps"}, tags, packages)) + " >/dev/null || exit"}
	if versions {
		resolve = []string{
			`mkdir "$work/.cofferdam-plan" && cd "$work/.cofferdam-plan" || exit 125`,
			"go mod init plan.invalid/plan 2>/dev/null || exit",
			command(slices.Concat([]string{"go", "get"}, tags, packages)...),
		}
	}
	return Rewrite{Client: GoGet, Argv: p.script(slices.Concat(resolve, goSums())...)}, nil
}

// goModDownload runs the command itself in the copy, and lists what it fetched.
func goModDownload(words []string, p Project) (Rewrite, error) {
	words = without(words, []string{"-json", "-x"}, nil)
	if err := refuseAny("go mod download", words, "it is not understood", "-C", "-reuse"); err != nil {
		return Rewrite{}, err
	}
	list := quoted(append([]string{"go", "mod", "download", "-json"}, words...)) + ` >"$out/download.json" || exit`
	return Rewrite{Client: GoModules, Argv: p.script(slices.Concat([]string{keepSum, list, "emit " + frameDownloads + ` "$out/download.json"`}, goSums())...)}, nil
}
