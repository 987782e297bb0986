package pypi

import (
	"html"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

func renderHTML(ix *ecosystem.Index, verdicts []ecosystem.Verdict) []byte {
	b := make([]byte, 0, perFile*(len(ix.Files)+1))
	b = append(b, "<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.0\"><title>"...)
	b = append(b, ix.Project...)
	b = append(b, "</title></head><body>\n"...)
	for i, m := range listMarks(ix, verdicts) {
		b = appendAnchor(b, ix.Files[i], m)
	}
	return append(b, "</body></html>\n"...)
}

func appendAnchor(b []byte, f ecosystem.File, m mark) []byte {
	b = append(b, `<a href="`...)
	link := f.ClientURL()
	if f.Kind != policy.KindBuilt { // the digest is its source's
		link += "#sha256=" + hexDigest(f.Digest)
	}
	b = append(b, html.EscapeString(link)...)
	b = append(b, '"')
	if f.Requires != "" {
		b = appendAttribute(b, "data-requires-python", f.Requires)
	}
	if m.yanked {
		b = appendAttribute(b, "data-yanked", m.reason)
	}
	if m.metadata {
		value := "true"
		if digest := m.digest(f); digest != "" {
			value = "sha256=" + hexDigest(digest)
		}
		b = appendAttribute(b, "data-core-metadata", value)
		b = appendAttribute(b, "data-dist-info-metadata", value) // pip before 23.3
	}
	b = append(b, '>')
	b = append(b, html.EscapeString(f.Name)...)
	return append(b, "</a><br>\n"...)
}

func appendAttribute(b []byte, name, value string) []byte {
	b = append(b, ' ')
	b = append(b, name...)
	b = append(b, `="`...)
	b = append(b, html.EscapeString(value)...)
	return append(b, '"')
}
