package npm

import (
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The forms of a page.
const (
	formFull        ecosystem.Form = "full"
	formAbbreviated ecosystem.Form = "abbreviated"
)

// Form is the abbreviated one for clients that want it at least as much as the
// full one.
func (Protocol) Form(accept string) ecosystem.Form {
	q := qualityOf(accept, typeAbbreviated)
	if q > 0 && q >= qualityOf(accept, typeFull) {
		return formAbbreviated
	}
	return formFull
}

// ContentType is the form's media type.
func (Protocol) ContentType(form ecosystem.Form) string {
	if form == formAbbreviated {
		return typeAbbreviated
	}
	return typeFull
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
			if !strings.EqualFold(k, "q") {
				continue
			}
			q, err := strconv.ParseFloat(v, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
		return 1
	}
	return 0
}
