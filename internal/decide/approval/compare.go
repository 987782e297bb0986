package approval

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
)

// lookBack bounds the earlier requests of a project that are looked at.
const lookBack = 100

// compare adds to the evidence what differs from the last release of the project
// that a person approved here.
func (q *Queue) compare(ctx context.Context, ask Ask, files []File, e evidence.Evidence) (evidence.Evidence, error) {
	switch ask.matter().kindOf() {
	case KindHost, KindPush:
		return q.compareHost(ctx, ask.Host, e)
	case KindCall:
		return q.compareCall(ctx, ask.Call, e)
	}
	pkg := ask.Package
	earlier, err := approvedOf(ctx, q.cfg.Store, pkg)
	if err != nil {
		return evidence.Evidence{}, err
	}
	if len(earlier) == 0 {
		return e, nil
	}
	last := earlier[0]
	if e.LastApproved == "" {
		e.LastApproved = last.Package.Version
	}
	differences := differing(last, e)
	if last.Package == pkg {
		differences = append(otherFiles(last, files), differences...)
	}
	for _, d := range differences {
		if !slices.Contains(e.Changes, d) {
			e.Changes = append(slices.Clip(e.Changes), d)
		}
	}
	return cleanEvidence(e), nil
}

// otherFiles tells what became of the files of a release that was approved.
func otherFiles(last Entry, files []File) []string {
	var changes []string
	added := 0
	for _, f := range files {
		if name := contradicted(last.Files, []File{f}); name != "" {
			changes = append(changes, fmt.Sprintf("the file %s had another digest when %s was approved", name, last.ID))
		} else if !slices.ContainsFunc(last.Files, func(k File) bool { return k.Name == f.Name }) {
			added++
		}
	}
	if added > 0 {
		changes = append(changes, fmt.Sprintf("%d of its files were not there when %s was approved", added, last.ID))
	}
	return changes
}

// differing tells what the evidence of two releases has differently. A thing that one of them does
// not tell at all is not compared.
func differing(last Entry, now evidence.Evidence) []string {
	var changes []string
	was := last.Evidence
	if len(was.Requires) > 0 && len(now.Requires) > 0 {
		for _, name := range goneNames(now.Requires, was.Requires) {
			changes = append(changes, "requires "+name+", which it did not before")
		}
		for _, name := range goneNames(was.Requires, now.Requires) {
			changes = append(changes, "requires "+name+" no more")
		}
	}
	for _, script := range now.Scripts {
		if !slices.Contains(was.Scripts, script) {
			changes = append(changes, "runs something at installation that it did not before: "+script)
		}
	}
	changes = append(changes, newInside(was.Inside, now.Inside)...)
	if was.Maintainer != "" && now.Maintainer != "" && was.Maintainer != now.Maintainer {
		changes = append(changes, fmt.Sprintf("its maintainer was %s and is %s", was.Maintainer, now.Maintainer))
	}
	return changes
}

// newInside tells what of a file's inside runs, or is to be read, that another's did not have.
func newInside(was, now *evidence.Inside) (changes []string) {
	if was == nil || now == nil {
		return nil
	}
	same := func(name string) string { return name }
	withoutSizes := func(what string) string { return sizes.ReplaceAllString(what, "") }
	for _, l := range []struct {
		says     string
		was, now []string
		core     func(string) string // of an entry, by which it is the same one
	}{
		{"has a line to read that it did not have before: ", was.Suspect, now.Suspect, withoutPlace},
		{"is built by something that it was not before: ", was.Builds, now.Builds, withoutSizes},
		{"runs something at each start that it did not before: ", was.Starts, now.Starts, same},
		{"has machine code that it did not have before: ", was.Native, now.Native, same},
	} {
		known := map[string]bool{}
		for _, entry := range l.was {
			known[l.core(entry)] = true
		}
		for _, entry := range l.now {
			if !known[l.core(entry)] {
				changes = append(changes, l.says+entry)
			}
		}
	}
	return changes
}

// sizes are those of the programs that build a release, which change with each of them.
var sizes = regexp.MustCompile(` \(\d+ bytes\)`)

// withoutPlace is a line to read without its file's and its own number, which change with each release.
func withoutPlace(line string) string {
	_, does, _ := strings.Cut(line, " ")
	return does
}

// goneNames are the names required in a and not in b.
func goneNames(a, b []string) []string {
	var names []string
	for _, r := range a {
		name := requiredName(r)
		if !slices.ContainsFunc(b, func(o string) bool { return requiredName(o) == name }) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// requiredName is the first word of "name specifier".
func requiredName(requirement string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(requirement), " ")
	return name
}
