package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
)

// LockName is the name that a client's lockfile has.
func (c Client) LockName() string {
	switch c {
	case Pip, UVPip:
		return frameRequirements
	case UVProject:
		return frameUVLock
	case NPM:
		return framePackageLock
	case PNPM:
		return framePnpmLock
	case GoGet, GoModules:
		return frameGoSum
	}
	return ""
}

// CheckLockName refuses a file name by which the lockfile could not be given to
// a run later: its format is told by its name.
func (c Client) CheckLockName(file string) error {
	base, want := path.Base(file), c.LockName()
	fits := base == want
	switch want {
	case frameRequirements:
		fits = strings.HasSuffix(base, ".txt")
	case framePackageLock:
		fits = fits || base == "npm-shrinkwrap.json"
	}
	if fits {
		return nil
	}
	if want == frameRequirements {
		return fault.Invalid("--lock %s: a plan of %s writes requirements with hashes, whose name ends in .txt", file, c)
	}
	return fault.Invalid("--lock %s: a plan of %s writes %s; a lockfile's format is told by its name, so give it that one", file, c, want)
}

// Lock writes the lockfile of a result. What it returns can be read again: it
// goes through the reader that holds a run to it.
func Lock(client Client, docs Documents, result Result) ([]byte, error) {
	data, err := lock(client, docs, result)
	if err != nil {
		return nil, err
	}
	if _, err := lockfile.Parse(client.LockName(), data); err != nil {
		return nil, err
	}
	return data, nil
}

func lock(client Client, docs Documents, result Result) ([]byte, error) {
	switch client {
	case Pip:
		return requirements(result), nil
	case GoModules:
		return downloadSums(docs)
	case UVPip, UVProject, NPM, PNPM, GoGet:
		if data, given := docs[client.LockName()]; given {
			return data, nil
		}
	}
	return nil, fault.Invalid("the resolver left no %s", client.LockName())
}

// requirements writes pip's requirements with hashes.
func requirements(result Result) []byte {
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

// downloadSums adds what go fetched to the project's go.sum: `go mod download`
// itself does not write all of it.
func downloadSums(docs Documents) ([]byte, error) {
	lines := map[string]bool{}
	for line := range strings.Lines(string(docs[frameGoSum])) {
		if line = strings.TrimSpace(line); line != "" {
			lines[line] = true
		}
	}
	err := eachDownload(docs[frameDownloads], func(d download) error {
		lines[d.Path+" "+d.Version+" "+d.Sum] = true
		lines[d.Path+" "+d.Version+"/go.mod "+d.GoModSum] = true
		return nil
	})
	var b strings.Builder
	for _, line := range sortedKeys(lines) {
		b.WriteString(line + "\n")
	}
	return []byte(b.String()), err
}
