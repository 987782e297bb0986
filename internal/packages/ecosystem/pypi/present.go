package pypi

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
)

// Present implements ecosystem.Presenter: what the header of METADATA says.
func (Protocol) Present(_ ecosystem.File, _, sidecar []byte) ecosystem.Publication {
	return publication(sidecar, nil)
}

// publication is what METADATA or PKG-INFO says, which have one form, and the files that have
// the licence's text.
func publication(metadata []byte, licenses []license.Text) ecosystem.Publication {
	fields := saidIn(metadata)
	first := func(keys ...string) string {
		for _, key := range keys {
			// Old tools write UNKNOWN where they know nothing.
			if values := fields[key]; len(values) > 0 && values[0] != "" && values[0] != "UNKNOWN" {
				return values[0]
			}
		}
		return ""
	}
	claims := license.Claims{Expression: first("license-expression"), Field: first("license"), Classifiers: fields["classifier"], Files: licenses}
	return ecosystem.Publication{
		Summary:    first("summary"),
		Maintainer: first("maintainer", "author", "maintainer-email", "author-email"),
		Homepage:   cmp.Or(first("home-page"), projectURL(fields["project-url"])),
		License:    claims.String(),
		Requires:   fields["requires-dist"],
	}.Clipped()
}

// saidIn are the fields of a header, in lower case. Of a field that goes on, the first line counts,
// but for a licence, which may be there whole.
func saidIn(metadata []byte) map[string][]string {
	fields := map[string][]string{}
	last := ""
	var licence []string // the lines after the first
	held := 0
	for line := range bytes.Lines(metadata) {
		text := strings.TrimRight(string(line), "\r\n")
		key, value, ok := strings.Cut(text, ":")
		if text == "" || !ok && text[0] != ' ' && text[0] != '\t' {
			break
		}
		if text[0] == ' ' || text[0] == '\t' {
			if last == "license" && len(fields["license"]) == 1 && held < license.MaxText {
				licence = append(licence, strings.TrimSpace(text))
				held += len(text)
			}
			continue
		}
		last = strings.ToLower(key)
		fields[last] = append(fields[last], strings.TrimSpace(value))
	}
	if len(licence) > 0 {
		fields["license"][0] += "\n" + strings.Join(licence, "\n")
	}
	return fields
}

// projectURL picks the page that publishers call their home, else the first.
func projectURL(all []string) string {
	found := ""
	for _, text := range all {
		label, url, ok := strings.Cut(text, ",")
		if !ok {
			continue
		}
		url = strings.TrimSpace(url)
		switch strings.ToLower(strings.TrimSpace(label)) {
		case "homepage", "home":
			return url
		case "source", "repository", "source code":
			found = url
		}
		found = cmp.Or(found, url)
	}
	return found
}
