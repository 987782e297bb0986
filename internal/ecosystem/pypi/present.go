package pypi

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// Present implements ecosystem.Presenter: what the header of METADATA says.
func (Protocol) Present(_ ecosystem.File, _, sidecar []byte) ecosystem.Publication {
	fields := map[string][]string{}
	for line := range bytes.Lines(sidecar) {
		text := strings.TrimRight(string(line), "\r\n")
		key, value, ok := strings.Cut(text, ":")
		if text == "" || !ok && text[0] != ' ' && text[0] != '\t' {
			break
		}
		if text[0] == ' ' || text[0] == '\t' {
			continue // of a field that goes on, the first line is told
		}
		key = strings.ToLower(key)
		fields[key] = append(fields[key], strings.TrimSpace(value))
	}
	first := func(keys ...string) string {
		for _, key := range keys {
			if values := fields[key]; len(values) > 0 && values[0] != "" {
				return values[0]
			}
		}
		return ""
	}
	return ecosystem.Publication{
		Summary:    first("summary"),
		Maintainer: first("maintainer", "author", "maintainer-email", "author-email"),
		Homepage:   cmp.Or(first("home-page"), projectURL(fields["project-url"])),
		License:    first("license-expression", "license"),
		Requires:   fields["requires-dist"],
	}.Clipped()
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
