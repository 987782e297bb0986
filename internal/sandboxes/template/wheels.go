package template

import (
	_ "embed" // the list of packages, and the script that finishes them
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// wheelsList is a line for each file: the Pythons and the architectures that it is for ("*":
// all), name, version, file and sha256.
//
//go:embed wheels.txt
var wheelsList string

//go:embed wheels.sh
var wheelsScript []byte

// pythons are the versions of Python in the distributions that packages are pinned for.
func pythons() map[string]string {
	return map[string]string{"bookworm": "3.11", "noble": "3.12", "trixie": "3.13"}
}

// wheelsFor are the packages for a distribution's Python. They go where the distribution has
// what its administrator installs: read-only in a sandbox, and found by every Python in it.
func wheelsFor(codename, arch string) ([]pin, error) {
	python, known := pythons()[codename]
	var pins []pin
	for line := range strings.Lines(wheelsList) {
		f := strings.Fields(line)
		if len(f) != 6 || f[0] == "#" || !columnHas(f[0], python) || !columnHas(f[1], arch) {
			continue
		}
		pins = append(pins, wheelPin(python, f[2], f[3], f[4], f[5]))
	}
	if !known || !slices.ContainsFunc(pins, func(p pin) bool { return p.Name == "numpy" }) {
		return nil, fault.New(fault.ErrUnavailable, "the packages of the template %s are pinned for the Pythons of %s on amd64 and arm64, and this host's distribution is %q on %s: install ipykernel in a sandbox of the template %s instead",
			NameInterpreter, strings.Join(slices.Sorted(maps.Keys(pythons())), ", "), codename, arch, NameDebian)
	}
	return pins, nil
}

// columnHas tells whether a column of the list has a value.
func columnHas(column, value string) bool {
	return column == "*" || slices.Contains(strings.Split(column, ","), value)
}

func wheelPin(python, name, version, file, sha256 string) pin {
	site := localLib + "python" + python + "/dist-packages/"
	return pin{
		Artifact: artifact(name, version, file, "sha256-"+sha256), tool: name,
		place: func(path string) (string, bool) {
			folder, rest, _ := strings.Cut(path, "/")
			if !strings.HasSuffix(folder, ".data") {
				return site + path, true
			}
			scheme, rest, _ := strings.Cut(rest, "/")
			return site + rest, scheme == "purelib" || scheme == "platlib" // scripts and manuals are left out
		},
	}
}

// wheelsScript is where the script lies that unpacks packages, beside customize.sh.
func (b *debianBuild) wheelsScript(customize string) string {
	return filepath.Join(filepath.Dir(customize), "wheels.sh")
}

// scripts are what finishes the tree, in this order.
func (b *debianBuild) scripts(customize string) []string {
	if b.layout.wheels {
		return []string{b.wheelsScript(customize), customize}
	}
	return []string{customize}
}
