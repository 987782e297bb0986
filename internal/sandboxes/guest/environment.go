package guest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Where the agent keeps what commands read.
const (
	toolDir    = "/.cofferdam/bin"
	systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// markerVariable carries a command's id to all processes that come of it.
const markerVariable = "COFFERDAM_COMMAND"

// trustEnv points every client at the sandbox's certificates. Clients that
// replace their trust store get the bundle, those that add to it the CA alone.
func trustEnv() map[string]string {
	return map[string]string{
		"SSL_CERT_FILE":                    channel.BundleFile, // OpenSSL and what follows it
		"REQUESTS_CA_BUNDLE":               channel.BundleFile,
		"CURL_CA_BUNDLE":                   channel.BundleFile,
		"AWS_CA_BUNDLE":                    channel.BundleFile,
		"DENO_CERT":                        channel.CAFile,
		"CARGO_HTTP_CAINFO":                channel.BundleFile,
		"GIT_SSL_CAINFO":                   channel.BundleFile,
		"NODE_EXTRA_CA_CERTS":              channel.CAFile,
		"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": channel.BundleFile,
		// Codex takes this before SSL_CERT_FILE, in place of its own.
		"CODEX_CA_CERTIFICATE": channel.BundleFile,
	}
}

// timeoutEnv has other clients than those that the host configures wait as long, and
// not repeat a refusal.
func timeoutEnv() map[string]string {
	return map[string]string{"CARGO_HTTP_TIMEOUT": "600", "CARGO_NET_RETRY": "1"}
}

// sideDownloadEnv points what clients and packages would fetch from somewhere else to the
// name that says why there is nothing.
func sideDownloadEnv() map[string]string {
	const from = channel.SideDownloads
	return map[string]string{
		"NVM_NODEJS_ORG_MIRROR":               from + "node",
		"N_NODE_MIRROR":                       from + "node",
		"FNM_NODE_DIST_MIRROR":                from + "node",
		"RUSTUP_DIST_SERVER":                  from + "rust",
		"RUSTUP_UPDATE_ROOT":                  from + "rust/rustup",
		"PLAYWRIGHT_DOWNLOAD_HOST":            from + "playwright",
		"PUPPETEER_DOWNLOAD_BASE_URL":         from + "puppeteer",
		"PUPPETEER_CHROME_DOWNLOAD_BASE_URL":  from + "puppeteer",
		"PUPPETEER_FIREFOX_DOWNLOAD_BASE_URL": from + "puppeteer",
		"CHROMEDRIVER_CDNURL":                 from + "chromedriver",
		"GECKODRIVER_CDNURL":                  from + "geckodriver",
		"CYPRESS_INSTALL_BINARY":              from + "cypress",
		"ELECTRON_MIRROR":                     from + "electron/",
		"SASS_BINARY_SITE":                    from + "node-sass",
		"SENTRYCLI_CDNURL":                    from + "sentry-cli",
		"PRISMA_ENGINES_MIRROR":               from + "prisma",
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
	for _, layer := range []map[string]string{timeoutEnv(), sideDownloadEnv(), agentEnv(), userEnv(user)} {
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
