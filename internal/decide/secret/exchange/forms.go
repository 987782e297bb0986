package exchange

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Forms are the ways in which a text is looked for in messages.
func Forms(text string) []string { return formsOf(text) }

var percentEncoded = regexp.MustCompile(`%[0-9A-F]{2}`)

// formsOf are the ways in which a text may stand in a message: raw, in base64 at any of
// the three alignments, escaped for a URL, escaped in JSON.
func formsOf(text string) []string {
	forms := []string{text, url.QueryEscape(text), url.PathEscape(text)}
	for _, escaped := range forms[1:] {
		forms = append(forms, percentEncoded.ReplaceAllStringFunc(escaped, strings.ToLower))
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err == nil { // else it is no text of JSON
		plain := string(quoted[1 : len(quoted)-1])
		forms = append(forms, plain, strings.ReplaceAll(plain, "/", `\/`),
			strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(plain),
			strings.NewReplacer("<", `\u003C`, ">", `\u003E`, "&", `\u0026`).Replace(plain))
	}
	for before := range 3 {
		std := aligned(text, before)
		forms = append(forms, std, urlLetters(std))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// urlLetters is base64 with the letters that it has in URLs.
func urlLetters(std string) string { return strings.NewReplacer("+", "-", "/", "_").Replace(std) }

// aligned is the text in base64 as it is behind so many bytes: the letters that depend on
// nothing else.
func aligned(text string, before int) string {
	all := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return all[(8*before+5)/6 : 8*(before+len(text))/6]
}
