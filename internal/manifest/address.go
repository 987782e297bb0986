package manifest

import (
	"net/url"
	"strings"
)

// IsAt tells whether an address is one of this host, in small letters, by HTTPS and with nothing else that says whom to ask: no user
// and no port.
func IsAt(address, host string) bool {
	at, err := url.Parse(address)
	return err == nil && at.Scheme == "https" && at.User == nil && strings.ToLower(at.Host) == host && !strings.ContainsAny(address, " \t\\")
}
