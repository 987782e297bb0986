package exchange

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// signedForm looks in a form's parts for a signature while it passes: an upload by a form (POST
// Object) has the key that it is signed with, and the signature, among its parts.
type signedForm struct {
	kept []byte // what a part's name may begin in; of blanks in a row, one
}

// signedFormOf is one for a request whose host gets signatures; nil: the request has no such form.
func signedFormOf(r *http.Request, credentials []Credential) *signedForm {
	kind := strings.ToLower(strings.Join(r.Header.Values("Content-Type"), ","))
	if !strings.Contains(kind, "multipart") || !slices.ContainsFunc(credentials, func(c Credential) bool { return c.Sign == SigV4 }) {
		return nil
	}
	return &signedForm{}
}

// signatureField finds the name of a part that signs a form, in whichever version of signatures.
var signatureField = regexp.MustCompile(`(?i)name[*0-9]*\s*=[\s"'\\]*(?:[a-z0-9-]*'[a-z-]*')?(?:x-amz-(?:credential|signature|security-token|algorithm)|awsaccesskeyid|signature)[\s"'\\;]`)

// keptName bounds a part's name with what stands around it, in bytes, also where it is escaped. Blanks,
// of which there may be any number, count once.
const keptName = 512

// checkMore takes more of the form in. An error refuses it.
func (s *signedForm) checkMore(more []byte) error {
	if s == nil {
		return nil
	}
	for _, c := range more {
		if blank := c == ' ' || '\t' <= c && c <= '\r'; blank {
			if c = ' '; len(s.kept) > 0 && s.kept[len(s.kept)-1] == ' ' {
				continue
			}
		}
		s.kept = append(s.kept, c)
	}
	if signatureField.Match(s.kept) || signatureField.MatchString(Unescape(string(s.kept))) {
		return &Refused{Sentence: "a form is signed among its parts, and only what is signed in the header is signed anew; an upload by a signed form can't be used from inside"}
	}
	s.kept = append(s.kept[:0], s.kept[max(0, len(s.kept)-keptName):]...)
	return nil
}
