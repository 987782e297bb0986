package debian

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Installed is a package that is installed in a sandbox, as its guest says.
type Installed struct {
	Name         string
	Version      string
	Architecture string
	fields       []string // of all of relations, "" where there is none
}

// relations are what else apt goes by, and compares with its lists to know a package again.
func relations() []string {
	return []string{"Multi-Arch", "Essential", "Installed-Size", "Pre-Depends", "Depends", "Provides", "Conflicts", "Breaks", "Replaces"}
}

// Query are the arguments of the dpkg-query whose output ReadInstalled reads.
func Query() []string {
	format := "${Status}\t${Package}\t${Version}\t${Architecture}\t${" + strings.Join(relations(), "}\t${") + "}"
	return []string{"dpkg-query", "--show", "--showformat", format + "\n"}
}

// MaxInstalled bounds the output of Query, in bytes.
const MaxInstalled = 8 << 20

// ReadInstalled reads the output of Query: what is installed whole.
func ReadInstalled(content string) ([]Installed, error) {
	if len(content) > MaxInstalled {
		return nil, fault.New(fault.ErrExhausted, "the sandbox's list of installed packages has more than %d bytes", MaxInstalled)
	}
	var all []Installed
	for line := range strings.Lines(content) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(row) != 4+len(relations()) {
			return nil, fault.New(fault.ErrConflict, "the sandbox's list of installed packages has a line that is none: %s", text.Shorten(fmt.Sprintf("%q", line), 200))
		}
		if !strings.HasSuffix(row[0], " ok installed") {
			continue // removed, or half-way to somewhere
		}
		p := Installed{Name: row[1], Version: row[2], Architecture: row[3], fields: row[4:]}
		if err := p.checkFields(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// The forms of a package's fields.
var (
	packageName      = regexp.MustCompile(`^` + namePattern + `$`)
	packageVersion   = regexp.MustCompile(`^` + versionPattern + `$`)
	architectureName = regexp.MustCompile(`^` + architecturePattern + `$`)
	relation         = regexp.MustCompile(`^[A-Za-z0-9+.:~()<>=,|\[\]! -]*$`)
)

// checkFields refuses what is in no package of a distribution: nothing of it may end a line, or
// begin a field.
func (p Installed) checkFields() error {
	for content, form := range map[string]*regexp.Regexp{p.Name: packageName, p.Version: packageVersion, p.Architecture: architectureName} {
		if len(content) > 300 || !form.MatchString(content) {
			return fault.New(fault.ErrConflict, "the sandbox's list of installed packages has %s, which no package has", text.Shorten(fmt.Sprintf("%q", content), 100))
		}
	}
	for _, content := range p.fields {
		if len(content) > 64<<10 || !relation.MatchString(content) {
			return fault.New(fault.ErrConflict, "what the installed package %s depends on can't be read: %s", p.Name, text.Shorten(fmt.Sprintf("%q", content), 100))
		}
	}
	return nil
}

const (
	namePattern         = `[a-z0-9][a-z0-9+.-]+`
	versionPattern      = `[A-Za-z0-9.+~:-]+`
	architecturePattern = `[a-z0-9-]+`
)

// status is what apt reads in place of dpkg's own list.
func status(all []Installed) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "Package: %s\nStatus: install ok installed\nVersion: %s\nArchitecture: %s\n", p.Name, p.Version, p.Architecture)
		for i, field := range relations() {
			if p.fields[i] != "" {
				fmt.Fprintf(&b, "%s: %s\n", field, p.fields[i])
			}
		}
		b.WriteString("Maintainer: none\nDescription: installed\n\n")
	}
	return b.String()
}

// architecture is that of what is installed.
func architecture(all []Installed) (string, error) {
	i := slices.IndexFunc(all, func(p Installed) bool { return p.Name == "dpkg" })
	if i < 0 || all[i].Architecture == "all" {
		return "", fault.New(fault.ErrConflict, "the sandbox has no dpkg, so packages of the distribution can't be installed in it")
	}
	return all[i].Architecture, nil
}
