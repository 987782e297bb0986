package npm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
)

// Present implements ecosystem.Presenter: what a version's manifest says.
// Publishers write these fields in several shapes; one that has another is left
// out.
func (Protocol) Present(_ ecosystem.File, row, _ []byte) ecosystem.Publication {
	return present(row, nil)
}

// manifestFields are the members of a manifest.
type manifestFields map[string]json.RawMessage

// present is Present of a manifest or a package.json, with the files that have the licence's text.
func present(manifest []byte, licenses []license.Text) ecosystem.Publication {
	fields := manifestFields{}
	if json.Unmarshal(bytes.TrimPrefix(manifest, []byte("\xef\xbb\xbf")), &fields) != nil {
		return ecosystem.Publication{}
	}
	p := ecosystem.Publication{
		Summary:    textOf(fields["description"]),
		Maintainer: cmp.Or(namesOf(fields["maintainers"]), textOf(fields["author"], "name")),
		Homepage:   cmp.Or(textOf(fields["homepage"]), textOf(fields["repository"], "url")),
		License:    licenseOf(fields, licenses),
		Requires:   pairsOf(fields["dependencies"], " "),
	}
	p.Scripts = runsOf(fields)
	return p.Clipped()
}

// runsOf are the scripts that run when a release is installed from its archive, and what
// else its manifest says that runs then. (prepare runs for a repository's copy alone.)
func runsOf(fields manifestFields) (runs []string) {
	builds := true // without a script of its own a binding.gyp is built
	for _, s := range pairsOf(fields["scripts"], ": ") {
		switch name, _, _ := strings.Cut(s, ":"); name {
		case "preinstall", "install":
			builds = false
			runs = append(runs, s)
		case "postinstall":
			runs = append(runs, s)
		}
	}
	claims := func(name string) bool { return len(fields[name]) > 0 && !saysNothing(jsontext.Value(fields[name])) }
	if claims("gypfile") && builds {
		runs = append(runs, gypFile+": node-gyp rebuild")
	}
	if claims("hasInstallScript") && len(runs) == 0 {
		runs = append(runs, "something: its page says so (hasInstallScript), and not what")
	}
	return runs
}

// textOf is a string, or the field with one of these names of an object.
func textOf(raw json.RawMessage, names ...string) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	for _, name := range names {
		if json.Unmarshal(object[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// namesOf joins the names in a list of people.
func namesOf(raw json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	const most = 10
	var names []string
	for _, person := range list[:min(len(list), most)] {
		if name := textOf(person, "name"); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// typesOf are the names in a list of licences, or the one that is there in its place.
func typesOf(raw json.RawMessage) (names []string) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	const most = 10
	for _, one := range list[:min(len(list), most)] {
		if name := textOf(one, "type", "name"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// pairsOf are an object's members with text values, sorted.
func pairsOf(raw json.RawMessage, between string) []string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if value := textOf(object[key]); value != "" {
			out = append(out, key+between+value)
		}
	}
	return out
}
