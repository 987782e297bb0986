package pypi

import (
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The forms of a page.
const (
	formJSON ecosystem.Form = "json"
	formHTML ecosystem.Form = "html" // as application/vnd.pypi.simple.v1+html
	formText ecosystem.Form = "text" // the same bytes as text/html
)

// Form takes the client's most wanted type; of equals, the earlier in this
// order: JSON, versioned HTML, HTML. A client that wants none of them gets
// HTML, as the protocol demands of old clients without an Accept.
func (Protocol) Form(accept string) ecosystem.Form {
	best, quality := formText, 0.0
	for _, offer := range []struct {
		form  ecosystem.Form
		types []string
	}{
		{formJSON, []string{typeJSON, typeLatest}},
		{formHTML, []string{typeHTML, typeLatHTM}},
		{formText, []string{typeText, "text/*", "*/*"}},
	} {
		for _, media := range offer.types {
			if q := qualityOf(accept, media); q > quality {
				best, quality = offer.form, q
			}
		}
	}
	return best
}

// qualityOf finds a media type's q in an Accept header; 0 if it is not there.
func qualityOf(accept, media string) float64 {
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), media) {
			continue
		}
		for param := range strings.SplitSeq(params, ";") {
			k, v, _ := strings.Cut(strings.TrimSpace(param), "=")
			if strings.EqualFold(k, "q") {
				q, err := strconv.ParseFloat(v, 64)
				if err != nil || q < 0 || q > 1 {
					return 0
				}
				return q
			}
		}
		return 1
	}
	return 0
}
