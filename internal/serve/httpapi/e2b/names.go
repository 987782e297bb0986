package e2b

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// defaultTag is the tag of a name that is given none; clients also call it the latest.
const (
	defaultTag = "default"
	latestTag  = "latest"
)

// tagged is a name of a template or snapshot with its tag, NAME:TAG. Each tag of a
// name is a snapshot of its own. The default tag is "" here, and is not kept, so names
// that were given without tags, by older versions or on the daemon's host, mean it.
type tagged struct {
	name string
	tag  string
}

func nameOf(ref string) tagged {
	name, tag, _ := strings.Cut(ref, ":")
	if tag == defaultTag || tag == latestTag {
		tag = ""
	}
	return tagged{name, tag}
}

// keptName is the name as it is kept.
func (t tagged) keptName() string {
	if t.tag == "" {
		return t.name
	}
	return t.name + ":" + t.tag
}

// tagName is the tag as clients read it.
func (t tagged) tagName() string {
	if t.tag == "" {
		return defaultTag
	}
	return t.tag
}

// wholeName is the name as clients read it.
func (t tagged) wholeName() string { return t.name + ":" + t.tagName() }

var snapshotID = regexp.MustCompile(`^snap[0-9a-f]{16}$`)

var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// checkSnapshotName refuses what could be mistaken for something else where a
// template or snapshot is named.
func checkSnapshotName(ref string) error {
	name, tag, hasTag := strings.Cut(ref, ":")
	switch {
	case ref == "":
		return nil
	case !plainName.MatchString(name) || hasTag && !plainName.MatchString(tag):
		return fault.Invalid("the snapshot's name %q is not valid: 1 to 63 lower-case letters, digits, dots, dashes and underscores, the first a letter or digit, and a tag of the same form behind a colon if you like", text.Shorten(ref, 80))
	case slices.Contains(baseTemplates(), name) || snapshotID.MatchString(name):
		return fault.Invalid("the snapshot's name %q stands for something else; choose another", ref)
	}
	return nil
}
