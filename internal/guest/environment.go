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
		// Codex takes this before SSL_CERT_FILE, in place of its own.
		"CODEX_CA_CERTIFICATE": bundleFile,
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
		// A name that is none is asked for again at once, not after ten seconds.
		"npm_config_fetch_retry_mintimeout": "100",
		"YARN_HTTP_TIMEOUT":                 patience + "000",
	}
}

// quietEnv keeps package clients to what they were asked for: no question to a
// registry that is not needed for the work, and no other version of themselves.
func quietEnv() map[string]string {
	return map[string]string{
		"npm_config_audit":                "false",
		"npm_config_fund":                 "false",
		"npm_config_update_notifier":      "false", // pnpm's, too
		"COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
		"YARN_ENABLE_TELEMETRY":           "0",
		"GOTOOLCHAIN":                     "local", // go itself then says which it would need
		"GOVCS":                           "*:off",
	}
}

// sideDownloads is the name under which the gateway says why it serves no
// toolchains, browsers and the like.
const sideDownloads = "https://downloads.cofferdam.internal/"

// sideDownloadEnv points what clients and packages would fetch from somewhere
// else to that name. npm warns of settings that it does not know, so only
// variables of other names are used.
func sideDownloadEnv() map[string]string {
	return map[string]string{
		"npm_package_config_node_gyp_disturl": sideDownloads + "node-headers",
		"NVM_NODEJS_ORG_MIRROR":               sideDownloads + "node",
		"N_NODE_MIRROR":                       sideDownloads + "node",
		"FNM_NODE_DIST_MIRROR":                sideDownloads + "node",
		"UV_PYTHON_INSTALL_MIRROR":            sideDownloads + "python",
		"UV_PYPY_INSTALL_MIRROR":              sideDownloads + "python",
		"RUSTUP_DIST_SERVER":                  sideDownloads + "rust",
		"RUSTUP_UPDATE_ROOT":                  sideDownloads + "rust/rustup",
		"PLAYWRIGHT_DOWNLOAD_HOST":            sideDownloads + "playwright",
		"PUPPETEER_DOWNLOAD_BASE_URL":         sideDownloads + "puppeteer",
		"PUPPETEER_CHROME_DOWNLOAD_BASE_URL":  sideDownloads + "puppeteer",
		"PUPPETEER_FIREFOX_DOWNLOAD_BASE_URL": sideDownloads + "puppeteer",
		"CHROMEDRIVER_CDNURL":                 sideDownloads + "chromedriver",
		"GECKODRIVER_CDNURL":                  sideDownloads + "geckodriver",
		"CYPRESS_INSTALL_BINARY":              sideDownloads + "cypress",
		"ELECTRON_MIRROR":                     sideDownloads + "electron/",
		"SASS_BINARY_SITE":                    sideDownloads + "node-sass",
		"SENTRYCLI_CDNURL":                    sideDownloads + "sentry-cli",
		"PRISMA_ENGINES_MIRROR":               sideDownloads + "prisma",
	}
}

// agentEnv tells agents that they are in a sandbox: some ask people less then, or do
// as root what they would refuse.
func agentEnv() map[string]string { return map[string]string{"IS_SANDBOX": "1"} }

// userEnv is what a login would set.
func userEnv(user channel.User) map[string]string {
	path := systemPath + ":" + toolDir
	if user.UID != 0 && user.Home != "/" {
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
	for _, layer := range []map[string]string{patienceEnv(), quietEnv(), sideDownloadEnv(), agentEnv(), userEnv(user)} {
		maps.Copy(env, layer)
	}
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
