package npm

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
)

// npmrc is what npm's files and variables set, by key. npm itself shows no
// credentials, so they are read here.
type npmrc map[string]string

// maxNpmrc bounds one file.
const maxNpmrc = 1 << 20

// readNpmrc reads npm's files and, over them, its variables. A file that can't
// be read is not there, as for npm.
func readNpmrc(s npmSettings, env []string) npmrc {
	rc := npmrc{}
	for _, path := range npmrcPaths(s, env) {
		if raw, err := discover.ReadAtMost(path, maxNpmrc); err == nil {
			rc.parseLines(string(raw), env)
		}
	}
	for _, pair := range env {
		name, v, _ := strings.Cut(pair, "=")
		const prefix = "npm_config_"
		if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) || v == "" {
			continue
		}
		key := name[len(prefix):]
		if !strings.HasPrefix(key, "//") {
			key = strings.ReplaceAll(strings.ToLower(key), "_", "-")
		}
		rc[key] = v
	}
	return rc
}

// npmVariable matches what npm replaces by a variable.
var npmVariable = regexp.MustCompile(`\$\{([^}?]+)(\??)\}`) // a constant

// parseLines reads the lines "key=value"; comments, sections and lists are left out.
func (rc npmrc) parseLines(text string, env []string) {
	expand := func(s string) string {
		return npmVariable.ReplaceAllStringFunc(s, func(m string) string {
			found := npmVariable.FindStringSubmatch(m)
			if v := discover.Value(env, found[1]); v != "" || found[2] != "" {
				return v
			}
			return m
		})
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, v, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, ";") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[") {
			continue
		}
		rc[expand(discover.Unquote(strings.TrimSpace(key)))] = expand(discover.Unquote(strings.TrimSpace(v)))
	}
}

// scoped tells whether scopes have registries of their own.
func (rc npmrc) scoped() bool {
	for key := range rc {
		if strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry") {
			return true
		}
	}
	return false
}

// credentials finds those of a registry: the ones of the longest path that leads
// to it, as npm does.
func (rc npmrc) credentials(registry *url.URL, to *discover.Said) {
	path := "/" + strings.Trim(registry.EscapedPath(), "/")
	for {
		for _, place := range []string{"//" + registry.Host + strings.TrimSuffix(path, "/") + "/", "//" + registry.Host + strings.TrimSuffix(path, "/")} {
			if rc.takeCredentials(place, to) {
				return
			}
		}
		if path == "/" {
			return
		}
		path = "/" + strings.Trim(path[:strings.LastIndexByte(path, '/')], "/")
	}
}

// takeCredentials takes the credentials that are set for a place, if there are any.
func (rc npmrc) takeCredentials(place string, to *discover.Said) bool {
	if token := rc[place+":_authToken"]; token != "" {
		to.Token = token
		return true
	}
	if both, err := base64.StdEncoding.DecodeString(rc[place+":_auth"]); err == nil && len(both) > 0 {
		to.Username, to.Password, _ = strings.Cut(string(both), ":")
		return true
	}
	password, err := base64.StdEncoding.DecodeString(rc[place+":_password"])
	if user := rc[place+":username"]; user != "" && err == nil {
		to.Username, to.Password = user, string(password)
		return true
	}
	return false
}
