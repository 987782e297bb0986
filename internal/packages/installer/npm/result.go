package npm

import (
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// readLock reads package-lock.json and leaves out what npm does not install on
// this machine: optional packages for other systems.
func readLock(data []byte) (installer.Result, error) {
	lock, unpinned, err := lockfile.ParseResolved(packageLock, data)
	if err != nil {
		return installer.Result{}, err
	}
	var packages struct {
		Packages map[string]struct {
			Name     string   `json:"name"`
			Version  string   `json:"version"`
			OS       []string `json:"os"`
			CPU      []string `json:"cpu"`
			Optional bool     `json:"optional"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &packages); err != nil {
		return installer.Result{}, fault.Wrap(fault.ErrInvalid, err, "%s can't be read", packageLock)
	}
	here, elsewhere := map[pkgref.Ref]bool{}, map[pkgref.Ref]bool{}
	for place, p := range packages.Packages {
		name := p.Name
		if i := strings.LastIndex(place, "node_modules/"); i >= 0 && name == "" {
			name = place[i+len("node_modules/"):]
		}
		ref := pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: p.Version}
		if p.Optional && (!runsOn(p.OS, "linux") || !runsOn(p.CPU, nodeArch())) {
			elsewhere[ref] = true
		} else {
			here[ref] = true
		}
	}
	for ref := range here {
		delete(elsewhere, ref)
	}
	out := installer.OfLock(lock, unpinned, elsewhere)
	if len(elsewhere) > 0 {
		out.Notes = append(out.Notes, installer.Plural(len(elsewhere), "optional package")+" of the lockfile for other systems: npm does not install them here")
	}
	return out, nil
}

// runsOn reads npm's lists of systems: names, or names that are not meant.
func runsOn(list []string, own string) bool {
	positive := false
	for _, entry := range list {
		not, negated := strings.CutPrefix(entry, "!")
		if negated && not == own {
			return false
		}
		positive = positive || !negated
	}
	return !positive || slices.Contains(list, own) || slices.Contains(list, "any")
}

func nodeArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}
