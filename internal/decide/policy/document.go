package policy

import (
	"reflect"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// The types of this file are the shape of a document: which keys an object has, and what
// is written at each. The compiler takes an object's keys from them, and Schema is made of
// them. No value of these types is ever made. "means" is what an editor shows.

// document is the whole of it.
type document struct {
	Name             textValue                          `key:"name" means:"Names the policy in records."`
	Version          textValue                          `key:"version" means:"The policy's version in records. Quote it."`
	Description      anyText                            `key:"description" means:"For people only."`
	Mode             modeWord                           `key:"mode" means:"observe: what the document would refuse is recorded and let through, for a roll-out. What is known to be harmful is refused all the same. enforce if absent."`
	Isolation        engineName                         `key:"isolation" means:"The engine that sandboxes run under; auto: the strongest that the host has; hardware: one with a wall of hardware. A host that does not have it refuses the run."`
	Defaults         defaultsKeys                       `key:"defaults" means:"Limits, and what holds where no rule matches."`
	Packages         packagesKeys                       `key:"packages" means:"How packages are judged."`
	AllowedPackages  map[pkgref.Ecosystem][]allowedKeys `key:"allowed_packages" means:"Packages that may be installed, by ecosystem."`
	BlockedPackages  map[pkgref.Ecosystem][]blockedKeys `key:"blocked_packages" means:"Packages that are denied, whatever else allows them."`
	Namespaces       []namespaceKeys                    `key:"namespaces" means:"Private names, each with the one upstream that it comes from."`
	NetworkAllowlist []hostKeys                         `key:"network_allowlist" means:"Names that the sandbox can connect to: a host, *.host for all below it, host:port; or an object that says more, like which requests may be made."`
	NetworkPresets   []presetName                       `key:"network_presets" means:"Names of well-known services, by one word for each: anthropic, openai, github, ... They are added to network_allowlist."`
	NetworkUnlisted  unlistedName                       `key:"network_unlisted" means:"What becomes of a name that the policy does not list: deny, or hold for a person. Deny if absent."`
	NetworkProxy     bool                               `key:"network_proxy" means:"Also offers the listed names by a proxy inside, HTTP and SOCKS 5, and sets the variables that tell tools of it."`
	PublishedPorts   []ports                            `key:"published_ports" means:"Ports inside the sandbox that clients of the daemon may connect to."`
	Credentials      credentialsKeys                    `key:"credentials" means:"Secrets that hosts get and the sandbox does not have."`
	ToolAllowlist    []textValue                        `key:"tool_allowlist" means:"Functions of the host that may be called, by their names in the daemon's configuration. None if absent."`
	Rules            []ruleKeys                         `key:"rules" means:"Rules for the commands, code and tools that Cofferdam itself starts. They never judge packages."`
	Environment      environmentKeys                    `key:"environment" means:"What is kept after a run."`
	Network          networkKeys                        `key:"network" means:"The network, in the form of a sandbox configuration."`
	Filesystem       filesystemKeys                     `key:"filesystem" means:"Files, in the form of a sandbox configuration."`
	Resources        resourcesKeys                      `key:"resources" means:"Limits, in the form of a sandbox configuration."`
	SandboxMounts    sandboxMountsKeys                  `key:"sandbox_mounts" means:"Mounts, in the form of an agent-sandbox policy."`
	Inherit          bool                               `key:"inherit" means:"Has no effect: one document is the whole policy."`
	Metadata         freeObject                         `key:"metadata" means:"For people only."`
	Disclaimer       anyText                            `key:"disclaimer" means:"For people only."`
	Scope            null                               `key:"scope" means:"Only null: a policy applies to the whole run."`
}

type defaultsKeys struct {
	Action              action          `key:"action" means:"For a command, code or tool that no rule matches. Packages and the network never read it."`
	NetworkDefault      networkDefault  `key:"network_default" means:"For names that the policy does not list. An open network (allow) is not offered."`
	TimeoutSeconds      *timeoutSeconds `key:"timeout_seconds" means:"A command is killed after so many seconds."`
	MaxMemoryMB         *megabytes      `key:"max_memory_mb" means:"Memory, in MiB."`
	MaxCPU              *cores          `key:"max_cpu" means:"CPU cores."`
	MaxDiskMB           *megabytes      `key:"max_disk_mb" means:"New files, in MiB."`
	MaxPids             *pids           `key:"max_pids" means:"Processes and threads."`
	MaxTokens           amount          `key:"max_tokens" means:"Not enforced: it counts what a model does outside the sandbox."`
	MaxToolCalls        amount          `key:"max_tool_calls" means:"A sandbox makes so many calls of tools at most."`
	ConfidenceThreshold amount          `key:"confidence_threshold" means:"Not enforced: it is about what a model does outside the sandbox."`
}

type packagesKeys struct {
	Default         effect            `key:"default" means:"For a package that no list names. Deny if absent."`
	OnHold          onHold            `key:"on_hold" means:"What an install does that waits for a person: fail, \"wait 20s\" or freeze. Fail if absent."`
	MinReleaseAge   duration          `key:"min_release_age" means:"A file that was published more recently is denied."`
	AgeSource       ageWord           `key:"age_source" means:"Where a file's age comes from. Trusted if absent."`
	Sdist           untrustedWord     `key:"sdist" means:"Source distributions. Building one runs its publisher's code: in the sandbox (allow), or in one of its own of which only the wheel comes back (throwaway). Deny if absent."`
	InstallScripts  untrustedWord     `key:"install_scripts" means:"Packages that run something when they are installed: in the sandbox (allow), or in one of its own of which only the package's files come back (throwaway). Deny if absent."`
	InstallIn       placeWord         `key:"install_in" means:"Where untrusted code runs that an install needs: throwaway is that word for sdist and install_scripts, where they are absent."`
	RequireHashes   bool              `key:"require_hashes" means:"Denies a file of which nobody gives a strong digest."`
	Toolchains      effect            `key:"toolchains" means:"Package managers and compilers that tools fetch by themselves. Deny if absent."`
	SimilarNames    effect            `key:"similar_names" means:"Names that look like a popular package's. Deny if absent."`
	Vulnerabilities vulnerabilityKeys `key:"vulnerabilities" means:"Releases with known vulnerabilities, as imported OSV records tell. None is judged if absent."`
	System          systemWord        `key:"system" means:"Packages of the distribution, which builds of templates install with apt. Deny if absent."`
	Unaccounted     unaccounted       `key:"unaccounted" means:"What follows when a package on the disk was never served. Alarm if absent."`
	Lockfile        lockfileKeys      `key:"lockfile" means:"Holds installs to the files that lockfiles name."`
}

// vulnerabilityKeys has one level at least.
type vulnerabilityKeys struct {
	Deny    severityWord `key:"deny" means:"Releases with a known vulnerability of this severity or a higher one are denied."`
	Hold    severityWord `key:"hold" means:"Those of this severity or a higher one wait for a person. It must be lower than deny."`
	Unknown effect       `key:"unknown" means:"What follows from a vulnerability whose severity nobody tells. Hold if there is a level for that, else deny."`
}

type lockfileKeys struct {
	Files someLockfiles `key:"files" means:"Lockfiles, absolute or relative to this document. Without this key a run brings its own with --lockfile."`
	Mode  lockWord      `key:"mode" means:"frozen: nothing outside the lockfiles. prefer: only the names in them are held to their pins."`
	Trust bool          `key:"trust" means:"What a lockfile pins needs no entry in allowed_packages."`
}

type allowedKeys struct {
	Name             textValue   `key:"name" needed:"yes" means:"The package."`
	Version          textValue   `key:"version" means:"A version specifier, in the ecosystem's own language."`
	MaxVersion       textValue   `key:"max_version" means:"The highest version: \"2.x\" is every 2.*, \"2.31.0\" is that version."`
	WithDependencies bool        `key:"with_dependencies" means:"Also admits what the package's verified metadata requires."`
	Prereleases      bool        `key:"prereleases" means:"Also admits pre-releases in the range."`
	InstallScripts   bool        `key:"install_scripts" means:"Admits the package although it runs scripts when it is installed."`
	Vulnerabilities  []textValue `key:"accepted_vulnerabilities" means:"Known vulnerabilities that packages.vulnerabilities does not count against it, by their ids or aliases."`
}

type blockedKeys struct {
	Name    textValue `key:"name" needed:"yes" means:"The package."`
	Version textValue `key:"version" means:"Which versions. All of them if absent."`
}

type namespaceKeys struct {
	Ecosystem ecosystem `key:"ecosystem" needed:"yes" means:"Whose names they are."`
	Pattern   textValue `key:"pattern" needed:"yes" means:"A name, or the beginning of one followed by *."`
	Upstream  indexURL  `key:"upstream" needed:"yes" means:"The index that these names come from, without credentials."`
}

// hostKeys is an entry of a list of names, which can be a name alone.
type hostKeys struct {
	Host hostName   `key:"host" needed:"yes" means:"A host, or *.host for all below it."`
	Port portNumber `key:"port" means:"The one port. 80 and 443 if absent."`
	TCP  bool       `key:"tcp" means:"Lets protocols other than TLS and HTTP pass, by the host's address alone. It needs a port that is not 80 or 443."`

	Methods      []method    `key:"methods" means:"The methods that a request may have. Every one if absent. GET does not bring HEAD along."`
	Paths        []pathForm  `key:"paths" means:"The paths that a request may have: * is any characters in a segment, ** any number of segments. Every one if absent."`
	MaxBody      byteSize    `key:"max_body" means:"How many bytes a request may carry, like 64kB or 1MB."`
	DenyPatterns []textValue `key:"deny_patterns" means:"Regular expressions that may not be found in a request: its target, its header, its body."`

	Git gitKeys `key:"git" means:"Repositories that can be fetched or pushed over HTTPS. It stands alone; other requests need an entry of their own."`
}

// gitKeys are what an entry says of repositories.
type gitKeys struct {
	Repos []repository `key:"repos" needed:"yes" means:"Which ones, by their paths at the host without .git: * is any characters in a segment, ** any number of segments."`
	Fetch fetchWord    `key:"fetch" means:"Fetches and clones of them. Allow if absent."`
	Push  pushWord     `key:"push" means:"Pushes to them: allow, hold for a person each time, or deny. Refused if no entry says otherwise."`
}

type credentialsKeys struct {
	Mode           justInTime   `key:"mode" means:"A secret is fetched before a run's first request that is read, and is forgotten at its end."`
	Inject         []injectKeys `key:"inject" means:"Which hosts get which secret."`
	SecretScanning scanningKeys `key:"secret_scanning" means:"What becomes of secrets that are found in what leaves the sandbox. true: redacted in output, and on record in files and requests."`
}

// scanningKeys can also be true or false.
type scanningKeys struct {
	Output   outcomeWord `key:"output" means:"What commands write, to whoever reads it. Off if absent."`
	Files    outcomeWord `key:"files" means:"Files that clients read. Off if absent."`
	Requests outcomeWord `key:"requests" means:"Requests to hosts that speak plain HTTP, or whose TLS is ended because the policy has rules or a credential for them; and what registries are asked for. Off if absent."`
	PII      outcomeWord `key:"pii" means:"Personal data, in the places where secrets are looked for. Off if absent."`
}

type injectKeys struct {
	Host   networkName  `key:"host" needed:"yes" means:"The host that gets the secret, over TLS: a name, or name:port."`
	Secret token        `key:"secret" needed:"yes" means:"The secret's name in the daemon's configuration, which says how it is put into requests."`
	Header token        `key:"header" means:"The header that it is put in. The daemon's configuration must have the same one."`
	Git    gitOperation `key:"git" means:"The one operation of git's whose requests get it: fetch, or push. All requests to the host do if absent."`
	Env    variables    `key:"env" means:"The sandbox's variable with the placeholder, or a list of them."`
	Own    ownWord      `key:"own_credentials" means:"Whether requests to the host may have other credentials beside it, of the sandbox's own. They are refused if absent, and cookies left out."`
}

type ruleKeys struct {
	Name             textValue     `key:"name" needed:"yes" means:"Names the rule in refusals and records."`
	Condition        conditionKeys `key:"condition" needed:"yes" means:"When the rule applies."`
	Action           ruleAction    `key:"action" needed:"yes" means:"allow and audit permit, deny and block refuse, approve has a person asked about a call of a tool."`
	Priority         priority      `key:"priority" means:"The highest comes first. 0 if absent."`
	Message          anyText       `key:"message" means:"Told to whoever is refused."`
	DynamicCondition null          `key:"dynamic_condition" means:"Only null."`
	Override         never         `key:"override" means:"Only false: there is no parent document."`
	Description      anyText       `key:"description" means:"For people only."`
}

type conditionKeys struct {
	Field    textValue `key:"field" needed:"yes" means:"command, code, tool (or tool_name), arguments, arguments.NAME or action."`
	Operator operator  `key:"operator" needed:"yes" means:"How the field is compared with the value."`
	Value    operand   `key:"value" needed:"yes" means:"A text, for an argument of a tool also a number, true or false; a list of such for in and not_in; a regular expression for matches."`
}

type environmentKeys struct {
	Mode     environmentMode `key:"mode" needed:"yes" means:"ephemeral: the sandbox is gone after the run. persistent is not offered yet."`
	Baseline textValue       `key:"baseline" means:"The snapshot that a persistent environment is compared with."`
}

type networkKeys struct {
	Mode            restricted `key:"mode" means:"No name is reachable that the policy does not list."`
	EgressAllowlist []hostKeys `key:"egress_allowlist" means:"The same as network_allowlist."`
	Ingress         denyAll    `key:"ingress" means:"No port of the sandbox is published."`
}

type filesystemKeys struct {
	Workspace  absolutePath    `key:"workspace" means:"The directory in the sandbox that commands start in."`
	Mode       mountMode       `key:"mode" means:"Whether the workspace can be written."`
	HostMounts []hostMountKeys `key:"host_mounts" means:"Paths of the host that are visible in the sandbox."`
}

type hostMountKeys struct {
	Source      absolutePath `key:"source" needed:"yes" means:"A path of the host."`
	Destination absolutePath `key:"destination" needed:"yes" means:"A path in the sandbox."`
	Mode        mountMode    `key:"mode" means:"read_only if absent."`
}

type resourcesKeys struct {
	CPULimit       quantity       `key:"cpu_limit" means:"CPU cores, as a Kubernetes quantity."`
	MemoryLimit    quantity       `key:"memory_limit" means:"Memory, as a Kubernetes quantity."`
	TimeoutSeconds timeoutSeconds `key:"timeout_seconds" means:"A command is killed after so many seconds."`
}

type sandboxMountsKeys struct {
	InputDir  *absolutePath `key:"input_dir" means:"A path of the host that is at /input, read-only."`
	OutputDir *absolutePath `key:"output_dir" means:"A path of the host that is at /output, read-write."`
}

// keysOf lists the keys of an object, in the order of its type.
func keysOf[T any]() []string {
	var keys []string
	for f := range reflect.TypeFor[T]().Fields() {
		keys = append(keys, f.Tag.Get("key"))
	}
	return keys
}
