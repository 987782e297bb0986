package plan

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// Plannable says in words which commands can be planned.
func Plannable(known []installer.Installer) string {
	var all []string
	for _, i := range known {
		all = append(all, i.Plannable()...)
	}
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// Of rewrites an install of one of the known clients. fault.ErrInvalid says in a sentence
// why a command can't be planned.
func Of(known []installer.Installer, argv []string, p installer.Project) (installer.Rewrite, error) {
	if len(argv) == 0 {
		return installer.Rewrite{}, fault.Invalid("no command given; these can be planned: %s", Plannable(known))
	}
	for _, i := range known {
		if r, mine, err := i.Rewrite(slices.Clone(argv), p); mine || err != nil {
			return r, err
		}
	}
	return installer.Rewrite{}, fault.Invalid("%q can't be planned; these can: %s", text.Shorten(strings.Join(argv, " "), installer.MaxQuoted), Plannable(known))
}
