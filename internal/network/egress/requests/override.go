package requests

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// overridden refuses a request whose query or body could give it another method. The body is
// looked through while it is sent; one that is encoded, before.
func (c *Carrier) overridden(r *http.Request) *Refusal {
	query := &formKeys{}
	if query.readPiece([]byte(r.URL.RawQuery)) != "" || query.endText() != "" {
		return otherFaced("the parameter _method")
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	all, said := readersOf(r.Header)
	fields := []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"}
	if !said { // messages are encoded for servers that speak gRPC, and these take a method from none
		fields = fields[:1]
	}
	coding := codingOf(r.Header, fields...)
	if (requestparts.BodyOf(r.Header).OtherLetters() || coding != "") && !said && !overrides(r.Method) {
		return nil
	}
	if requestparts.BodyOf(r.Header).OtherLetters() {
		return unreadable("written in another charset than UTF-8")
	}
	switch {
	case coding != "" && said:
		return c.readEncoded(r, coding, all)
	case coding != "" && !onlyTelemetry(coding):
		return c.readUnsaid(r, coding)
	}
	r.Body = &keyed{r.Body, all}
	return nil
}

// overrides tells whether servers take another method from the body of a request that has this
// one. Uploads of files, which may be encoded in any way, mostly have other ones.
func overrides(method string) bool { return strings.EqualFold(method, http.MethodPost) }

// unreadable refuses a body in which the fields of a form can't be found.
func unreadable(how string) *Refusal {
	return &Refusal{
		Rule: door.RuleHostBody, Status: http.StatusUnsupportedMediaType,
		Reason: "a request's form is " + how + ", and the policy rules on methods, of which a form can name another; send it as it is",
	}
}

// keyReader reads the keys of a form.
type keyReader interface {
	// readPiece takes some more of it, and end its end. They tell what in it gives a request
	// another method, or could; "": nothing.
	readPiece(p []byte) (wrong string)
	endText() (wrong string)
}

// readersOf are how servers may read a body. said tells that its type names a form or JSON. Whatever
// it says, there are servers that read JSON or a form in every body (express.json with type */*), so
// those of other types are read by what they begin with. Without a type some take it for a form, and
// no two read a bad one alike.
func readersOf(h http.Header) (all []keyReader, said bool) {
	kind := strings.ToLower(strings.Join(h.Values("Content-Type"), ","))
	isParts, isJSON := strings.Contains(kind, "multipart"), strings.Contains(kind, "json")
	isForm := strings.TrimSpace(kind) == "" || strings.Contains(kind, "urlencoded") || strings.Contains(kind, "x-www-form")
	sniffed := &sniffedKeys{}
	if isParts {
		all = append(all, &partHeads{})
		sniffed.begins = "--"
	}
	if isJSON {
		all = append(all, &jsonKeys{framed: strings.Contains(kind, "grpc") || strings.Contains(kind, "connect")})
		sniffed.begins = jsonBegins
	}
	if isForm {
		all = append(all, &formKeys{})
	}
	return append(all, sniffed), isParts || isJSON || isForm
}

// keyed is a body that fails at a key that gives the request another method.
type keyed struct {
	io.ReadCloser
	readers []keyReader
}

// Read implements io.Reader.
func (k *keyed) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	for _, one := range k.readers {
		wrong := one.readPiece(p[:n])
		if wrong == "" && err != nil {
			wrong = one.endText()
		}
		if wrong != "" {
			return 0, otherFaced(wrong)
		}
	}
	return n, err
}

// Sentences about what a key reader has found.
const (
	wrongField = "the form's field _method"
	wrongText  = "JSON that some servers read in another charset than UTF-8"
	wrongLoose = "a word like _method in what is no JSON by the letter, and what servers read in different ways"
	wrongParts = "a part of its form whose name servers do not read alike"
)

// methodKey tells whether frameworks take a key of a query or form for the method: _method, as
// they fold it, and the names of fields that do so; and _charset_, by which others are read.
var methodKey = regexp.MustCompile(`^_method_?$|^(?:_|x_?|http_?)*(?:method|verb)_?override_?$|^(?:_|x_?)*http_?method_?$|^_charset_$`)

// maxKey bounds such a key, in letters. No server knows a longer one.
const maxKey = 64

// key is one key, folded while it is read: in lower case, with one _ for all that stands between
// letters and digits. A zero byte ends it for some, and is nothing for others.
type key struct {
	text []byte
	long bool
	is   bool // up to a zero byte it was the method's
}

func (k *key) addByte(c byte) {
	switch {
	case 'A' <= c && c <= 'Z':
		c += 'a' - 'A'
	case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
	case c == 0:
		k.is = k.is || k.isMethodKey()
		return
	default:
		if c = '_'; len(k.text) > 0 && k.text[len(k.text)-1] == c {
			return
		}
	}
	if k.long = k.long || len(k.text) > maxKey; !k.long {
		k.text = append(k.text, c)
	}
}

// lastWords are the words with one of which, but for a _, each key ends that methodKey matches. To look for them costs
// a tenth of that.
var lastWords = [][]byte{[]byte("method"), []byte("override"), []byte("_charset")} //nolint:gochecknoglobals // a constant

func (k *key) isMethodKey() bool {
	if k.long || len(k.text) < len("_method") {
		return false
	}
	text := bytes.TrimSuffix(k.text, []byte("_"))
	return slices.ContainsFunc(lastWords, func(last []byte) bool { return bytes.HasSuffix(text, last) }) && methodKey.Match(k.text)
}

// isEmpty tells whether nothing has come of it.
func (k *key) isEmpty() bool { return len(k.text) == 0 && !k.long && !k.is }

// endsAsMethod tells whether it was the method's, and begins another one.
func (k *key) endsAsMethod() bool {
	is := k.is || k.isMethodKey()
	*k = key{text: k.text[:0]}
	return is
}

// formKeys reads the keys of a query, or of a form that is written like one.
type formKeys struct {
	key     key
	value   bool   // what comes is a key's value
	escaped []byte // of an escape, from its % on
}

func (f *formKeys) readPiece(p []byte) string {
	for _, c := range p {
		switch {
		case strings.IndexByte("&;\r\n", c) >= 0 || c == '=' && !f.value:
			if f.endText() != "" {
				return wrongField
			}
			f.value = c == '='
		case !f.value:
			f.take(c)
		}
	}
	return ""
}

func (f *formKeys) endText() string {
	f.flushEscape()
	if is := f.key.endsAsMethod(); is && !f.value {
		return wrongField
	}
	return ""
}

// take takes one byte of a key, which may be escaped as %41, or as %u0041. A bad escape stands
// for itself.
func (f *formKeys) take(c byte) {
	if c == '%' {
		f.flushEscape()
	}
	if c != '%' && len(f.escaped) == 0 {
		f.key.addByte(c)
		return
	}
	f.escaped = append(f.escaped, c)
	digits := f.escaped[1:]
	length := 2
	if len(digits) > 0 && (digits[0] == 'u' || digits[0] == 'U') {
		digits, length = digits[1:], 4
	}
	meant := 0
	for _, d := range digits {
		value := hexValue(d)
		if value < 0 {
			f.flushEscape()
			return
		}
		meant = meant<<4 | value
	}
	if len(digits) < length {
		return
	}
	if f.escaped = f.escaped[:0]; meant > 0x7f {
		meant = '_' // no letter of a key's
	}
	f.key.addByte(byte(meant))
}

// flushEscape takes what is no escape after all.
func (f *formKeys) flushEscape() {
	for _, c := range f.escaped {
		f.key.addByte(c)
	}
	f.escaped = f.escaped[:0]
}

// hexValue is a hexadecimal digit's value; below 0: it is none.
func hexValue(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}
