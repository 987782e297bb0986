package main

import (
	"slices"
	"strings"
	"testing"
)

// checkProject compares a project's roots, and looks for lines among what was left out.
func checkProject(t *testing.T, c mixed) {
	t.Helper()
	roots, lines := rootsAndLines(t, laidProject(t, c), false)
	if roots != c.roots {
		t.Errorf("the roots are %q, not %q; left out:\n%s", roots, c.roots, strings.Join(lines, "\n"))
	}
	for _, want := range c.lines {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("nothing says %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// TestAllOptionsOfALineAreRead: pip reads several in one line, by their beginnings too, and those of a constraints file.
func TestAllOptionsOfALineAreRead(t *testing.T) {
	t.Parallel()
	const own = "https://x.example/simple"
	for name, text := range map[string]string{
		"behind the public index":  "-i " + indexHere + " --extra-index-url " + own,
		"behind a long one":        "--index-url=" + indexHere + "\t--extra-index-url=" + own,
		"behind one without value": "--pre --extra-index-url " + own,
		"behind a host":            "--trusted-host x.example -i " + own,
		"behind one with a value":  "--no-binary :all: -f wheels",
		"behind a file":            "-r other.txt --no-index",
		"in quotes":                "--pre '--extra-index-url=" + own + "'",
		"by its beginning":         "--extra-index " + own,
		"files by theirs":          "--find " + own,
		"in constraints":           "-c limits.txt",
		"in constraints' own":      "-c outer.txt",
		"links at the public host": "-f " + indexHere,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkProject(t, mixed{map[string]string{
				"requirements.txt": text + "\nsix\n", "other.txt": "idna\n",
				"limits.txt": "six<2\n--extra-index-url " + own + "\n", "outer.txt": "-c limits.txt\n",
			}, nil, "", []string{"six: whether it comes from the public registry is not known"}})
		})
	}
	checkProject(t, mixed{map[string]string{"requirements.txt": "--pre -i " + indexHere + " --no-binary :all: --require-hashes\nsix\n"}, nil, "six", nil})
	checkProject(t, mixed{map[string]string{"requirements.txt": "-r a.txt -r b.txt --req c.txt\n", "a.txt": "six\n", "b.txt": "idna\n", "c.txt": "attrs\n"}, nil, "attrs idna six", nil})
}

// TestThePublicRegistryIsNamed: many public projects do that, and nothing is withheld for it. One that is like it is another.
func TestThePublicRegistryIsNamed(t *testing.T) {
	t.Parallel()
	host := "npm.example"
	for file, text := range map[string]string{
		".npmrc": "registry = %s\n", ".yarnrc": "registry \"%s\"\n", ".yarnrc.yml": "npmRegistryServer: %s\n",
		"bunfig.toml": "[install]\nregistry = '%s'\n", "pnpm-workspace.yaml": "registries:\n  default: %s\n",
	} {
		for address, roots := range map[string]string{
			"https://" + host + "/": "ms", "https://" + strings.ToUpper(host): "ms",
			"https://" + host + ".x.example/": "", "https://u:p@" + host + "/": "", "https://" + host + "@x.example/": "",
			"https://" + host + ":8443/": "", "http://" + host + "/": "", "https://x.example/" + host: "", "${REGISTRY}": "",
		} {
			t.Run(file+" "+address, func(t *testing.T) {
				t.Parallel()
				checkProject(t, mixed{map[string]string{"package.json": `{"dependencies":{"ms":"2"}}`, file: strings.Replace(text, "%s", address, 1)}, nil, roots, nil})
			})
		}
	}
}

// TestOddFilesAreNoNames: a name that is another argument's is not the project's, and Haskell's package.yaml is no error.
func TestOddFilesAreNoNames(t *testing.T) {
	t.Parallel()
	checkProject(t, mixed{map[string]string{"requirements.txt": "-e ./lib\nacme-lib\n", "lib/setup.py": "setup(name=NAME, x=[E(name='other')])\n"}, nil, "", []string{"acme-lib: whether"}})
	checkProject(t, mixed{map[string]string{"requirements.txt": "six\n", "package.yaml": "name: x\ndependencies:\n- base >= 4\n"}, nil, "six", []string{"package.yaml: it is no package as pnpm has it"}})
}

// TestWhatOnlyLooksLikeAnOption: words that begin as an option of pip's does, and the checks of containers by curl, name no registry.
// Those below each ask one.
func TestWhatOnlyLooksLikeAnOption(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{
		"tox.ini":            "commands =\n  doc2dash --index-page index.html --no-index-files\n  x --find-links-in docs --pypi-url-of x --extra-index-urls-of y\n",
		"compose.yml":        "healthcheck:\n  test: [\"CMD\", \"curl\", \"-f\", \"http://localhost:8000/health\"]\n",
		"docker-compose.yml": "healthcheck:\n  test: curl -sf -i http://localhost:8000\n",
		"Dockerfile":         "HEALTHCHECK CMD curl -f http://localhost/ || exit 1\nRUN apt-get update && curl -i https://x.example/key\n",
		"Makefile":           "up:\n\t@curl -f https://x.example/up\n",
	} {
		checkProject(t, mixed{map[string]string{"requirements.txt": "six\n", file: text}, nil, "six", nil})
	}
	for file, text := range map[string]string{
		"tox.ini": "x --index https://x.example", "noxfile.py": "s.run('--index-url=https://x.example')", "Makefile": "x --extra-index-u https://x.example", "tox.toml": "a = \"--index\"",
		"compose.yml": "command: [\"pip\", \"install\", \"-f\", \"x\"]", "Dockerfile": "RUN pip install curl -f https://x.example", "docker-compose.yml": "RUN curl -f http://x && pip install -f https://x.example",
		".pip-tools.toml": "extra_index_url = [\"https://x.example\"]", "mise.toml": "own_find_links = \"wheels\"", "makefile": "x --index- https://x.example",
		"justfile": "uv pip install six curl -i https://x.example", ".envrc": "pdm add curl -i https://x.example", "go.env": "s.install(\"curl\", \"-f\", \"https://x.example\")",
	} {
		checkProject(t, mixed{map[string]string{"requirements.txt": "six\n", file: text}, nil, "", []string{"it may have a client ask another registry"}})
	}
}
