package gocmd

import (
	"bytes"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// readGoSum takes the modules of go.sum. Lines that were there before count only
// if their module was fetched now.
func readGoSum(docs installer.Documents) (installer.Result, error) {
	out := installer.Result{Ecosystem: pkgref.Go}
	data, given := docs[sumFile]
	if !given || len(bytes.TrimSpace(data)) == 0 {
		out.Notes = append(out.Notes, "go needs no module for this")
		return out, nil
	}
	lock, err := lockfile.Parse(sumFile, data)
	if err != nil {
		return installer.Result{}, err
	}
	before := map[string]bool{}
	if old := docs[sumBefore]; len(bytes.TrimSpace(old)) > 0 {
		was, err := lockfile.Parse(sumFile, old)
		if err != nil {
			return installer.Result{}, err
		}
		for _, c := range installer.OfLock(was, nil, nil).Choices {
			before[c.Name+" "+c.Version] = true
		}
	}
	out = installer.OfLock(lock, nil, nil)
	for i, c := range out.Choices {
		out.Choices[i].IfRead = before[c.Name+" "+c.Version]
	}
	return out, nil
}
