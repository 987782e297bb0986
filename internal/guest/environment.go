package guest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// Where the agent keeps what commands read.
const (
	toolDir    = "/.cofferdam/bin"
	tlsDir     = "/run/cofferdam/tls"
	caFile     = tlsDir + "/ca.pem"
	bundleFile = tlsDir + "/bundle.pem"
	systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// markerVariable carries a command's id to all processes that come of it.
const markerVariable = "COFFERDAM_COMMAND"

// patience is how many seconds a package client waits for an answer: a person
// may be deciding.
const patience = "600"

// trustEnv points every client at the sandbox's certificates. Clients that
// replace their trust store get the bundle, those that add to it the CA alone.
func trustEnv() map[string]string {
	return map[string]string{
		"SSL_CERT_FILE":       bundleFile, // OpenSSL, Go, uv
		"PIP_CERT":            bundleFile,
		"REQUESTS_CA_BUNDLE":  bundleFile,
		"CURL_CA_BUNDLE":      bundleFile,
		"CARGO_HTTP_CAINFO":   bundleFile,
		"GIT_SSL_CAINFO":      bundleFile,
		"NODE_EXTRA_CA_CERTS": caFile,
		// npm ignores NODE_EXTRA_CA_CERTS once any cafile is set.
		"npm_config_cafile": bundleFile,
	}
}

// patienceEnv makes package clients wait long and not repeat a refusal.
func patienceEnv() map[string]string {
	return map[string]string{
		"PIP_DEFAULT_TIMEOUT":           patience,
		"PIP_RETRIES":                   "1",
		"PIP_DISABLE_PIP_VERSION_CHECK": "1",
		"PIP_BREAK_SYSTEM_PACKAGES":     "1", // the whole system is the sandbox's own
		"PIP_ROOT_USER_ACTION":          "ignore",
		"PIP_NO_INPUT":                  "1",
		"UV_HTTP_TIMEOUT":               patience,
		"UV_HTTP_RETRIES":               "1",
		"CARGO_HTTP_TIMEOUT":            patience,
		"CARGO_NET_RETRY":               "1",
		"npm_config_fetch_timeout":      patience + "000",
		"npm_config_fetch_retries":      "1",
		"npm_config_update_notifier":    "false",
		"YARN_HTTP_TIMEOUT":             patience + "000",
	}
}

// userEnv is what a login would set.
func userEnv(user channel.User) map[string]string {
	path := systemPath + ":" + toolDir
	if user.UID != 0 {
		path = user.Home + "/.local/bin:" + path
	}
	return map[string]string{
		"HOME":    user.Home,
		"USER":    user.Name,
		"LOGNAME": user.Name,
		"PATH":    path,
		"LANG":    "C.UTF-8",
	}
}

// commandEnv merges the layers of a command's environment, the later over the
// earlier: the agent's defaults, the user's, the host's Configure.Env, the
// command's own, and the marker over all. A PATH of the host gets the agent's
// tools at its end; a PATH of the command is taken as it is.
func commandEnv(user channel.User, configured map[string]string, exec *channel.Exec) ([]string, error) {
	env := trustEnv()
	maps.Copy(env, patienceEnv())
	maps.Copy(env, userEnv(user))
	maps.Copy(env, configured)
	if path, ok := configured["PATH"]; ok && !slices.Contains(strings.Split(path, ":"), toolDir) {
		env["PATH"] = path + ":" + toolDir
	}
	maps.Copy(env, exec.Env)
	if exec.PTY != nil && env["TERM"] == "" {
		env["TERM"] = "xterm-256color"
	}
	env[markerVariable] = exec.ID
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(env[name], 0) {
			return nil, fmt.Errorf("the environment variable %.80q can't be passed: a name must not be empty or have an equals sign, and neither part a zero byte", name)
		}
		list = append(list, name+"="+env[name])
	}
	return list, nil
}
