package policy

import (
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// suggestion is an allowlist entry that would admit a refused release, and
// little more.
type suggestion struct {
	ecosystem   pkgref.Ecosystem
	name        string
	limit       string // max_version
	version     string
	prereleases bool

	installScripts   bool
	withDependencies bool
	extras           []string
	// within is the line of the entry that gets key; 0: it is a new entry.
	within int
	key    string
}

// The keys that an entry can get.
const (
	keyDependencies = "with_dependencies"
	keyScripts      = "install_scripts"
)

// addition is for a name on no list: up to the release's own major version.
func addition(ecosystem pkgref.Ecosystem, name string, r pkgref.Version) suggestion {
	if r.PreRelease() {
		return widening(ecosystem, name, r)
	}
	return suggestion{ecosystem: ecosystem, name: name, limit: epochPrefix(r) + strconv.FormatInt(r.Segment(0), 10) + ".x"}
}

// widening is for a name whose entries do not admit the release: a further
// entry for the release's major and minor version alone.
func widening(ecosystem pkgref.Ecosystem, name string, r pkgref.Version) suggestion {
	if ecosystem.Traits().XRanges {
		major, minor := strconv.FormatInt(r.Segment(0), 10), r.Segment(1)
		version := major + "." + strconv.FormatInt(minor, 10)
		if r.PreRelease() {
			version = ">=" + version + ".0-0 <" + major + "." + strconv.FormatInt(minor+1, 10) + ".0"
		} else {
			version += ".x"
		}
		return suggestion{ecosystem: ecosystem, name: name, version: version, prereleases: r.PreRelease()}
	}
	version := "==" + epochPrefix(r) + strconv.FormatInt(r.Segment(0), 10) + "." + strconv.FormatInt(r.Segment(1), 10) + ".*"
	return suggestion{ecosystem: ecosystem, name: name, version: version, prereleases: r.PreRelease()}
}

func epochPrefix(r pkgref.Version) string {
	if epoch := r.Epoch(); epoch != 0 {
		return strconv.FormatInt(epoch, 10) + "!"
	}
	return ""
}

// fields are the entry's "key: value" pairs. Names are data from outside:
// quoted unless YAML can only read them as the text they are.
func (s suggestion) fields() []string {
	name := s.name
	if len(s.extras) > 0 {
		name += "[" + strings.Join(s.extras, ",") + "]"
	}
	fields := []string{"name: " + quoteName(name)}
	if s.limit != "" {
		fields = append(fields, `max_version: "`+s.limit+`"`)
	}
	if s.version != "" {
		fields = append(fields, "version: "+strconv.Quote(s.version)) // printable ASCII, or nothing could read it
	}
	if s.prereleases {
		fields = append(fields, "prereleases: true")
	}
	if s.installScripts {
		fields = append(fields, "install_scripts: true")
	}
	if s.withDependencies {
		fields = append(fields, "with_dependencies: true")
	}
	return fields
}

// blockText is the entry as an element of a block list whose dashes stand after
// indent spaces, a line feed at its end.
func (s suggestion) blockText(indent int) string {
	space := strings.Repeat(" ", indent)
	return space + "- " + strings.Join(s.fields(), "\n"+space+"  ") + "\n"
}

// flowText is the entry as "{ ... }".
func (s suggestion) flowText() string { return "{ " + strings.Join(s.fields(), ", ") + " }" }

// document is the entry with the keys above it.
func (s suggestion) document() string {
	return "allowed_packages:\n  " + string(s.ecosystem) + ":\n" + s.blockText(4)
}

// quoteName needs no escapes: canonical names are printable ASCII without
// quotes and backslashes, and others never get here.
func quoteName(name string) string {
	plain := name != "" && 'a' <= name[0] && name[0] <= 'z' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	switch name {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return name
	}
	return `"` + name + `"`
}
