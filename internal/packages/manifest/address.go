package manifest

import (
	"net/url"
	"strings"
)

// Asked gives the address of the registry that names without another one are asked of here: an upstream's index. An error says
// why it is not known.
type Asked func() (address string, err error)

// AskedHere sets which registry names are asked of here. It is called when a manifest first names one. Without it, none is known.
func (w *Wants) AskedHere(asked Asked) { w.asks = asked }

// Registry withholds all names for a registry that a manifest names by an address, unless that is the one that they are asked of
// here anyway. address is as it stands there: what is no text is none that is known.
func (w *Wants) Registry(file string, line int, text string, address any) {
	if why := w.elsewhere(address); why != "" {
		w.Withhold(file, line, text, why)
	}
}

// IsAsked tells whether an address is that of the registry that names are asked of here.
func (w *Wants) IsAsked(address any) bool { return w.elsewhere(address) == "" }

// NotAsked tells why an address is not that of the registry that names are asked of here, "" if it is.
func (w *Wants) NotAsked(address any) string { return w.elsewhere(address) }

// OtherRegistry is why names are withheld where a manifest says by more than an address that they come from elsewhere.
const OtherRegistry = "the project names another registry or place that its packages come from"

// elsewhere tells why a registry's address is another one's than that of here, "" if it is that one.
func (w *Wants) elsewhere(address any) string {
	named, is := normal(address)
	if !is {
		return OtherRegistry
	}
	if w.asks == nil {
		return "the project names the registry that its packages come from, and none is known that they are asked of here"
	}
	here, err := w.asks()
	if err != nil {
		return "the project names the registry that its packages come from, and which one they are asked of here is not known: " + err.Error()
	}
	if at, is := normal(here); is && at == named {
		return ""
	}
	return OtherRegistry
}

// normal is the one spelling of an address of http or https: the scheme and the host in small letters, without the scheme's own port and
// without slashes at the end. It is none with anything else that says whom to ask, or how: a user, a query, a fragment, blanks.
func normal(address any) (string, bool) {
	text, _ := address.(string)
	at, err := url.Parse(text)
	if err != nil || at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "" || at.Hostname() == "" || strings.ContainsAny(text, " \t\\#") {
		return "", false
	}
	host, port := strings.ToLower(at.Hostname()), map[string]string{"http": "80", "https": "443"}[at.Scheme]
	switch {
	case port == "":
		return "", false
	case at.Port() != "" && at.Port() != port:
		host += ":" + at.Port()
	}
	return at.Scheme + "://" + host + strings.TrimRight(at.EscapedPath(), "/"), true
}
