package policy

import (
	"reflect"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// The kinds of values in a document. Each says how it is written, as far as a JSON Schema
// can tell; the compiler asks for more.
type (
	textValue       string
	anyText         string   // may be empty
	freeObject      struct{} // whatever its author likes
	engineName      string
	modeWord        string
	networkName     string
	hostName        string
	token           string
	absolutePath    string
	indexURL        string
	duration        string
	onHold          string
	effect          string
	severityWord    string
	action          string
	ruleAction      string
	networkDefault  string
	unlistedName    string
	presetName      string
	ageWord         string
	unaccounted     string
	systemWord      string
	untrustedWord   string
	placeWord       string
	lockWord        string
	ecosystem       string
	operator        string
	mountMode       string
	environmentMode string
	justInTime      string
	outcomeWord     string
	restricted      string
	denyAll         string
	someLockfiles   []string
	operand         string
	quantity        string
	ports           string
	variableName    string
	variables       []string
	null            struct{}
	never           bool
	timeoutSeconds  float64
	cores           float64
	amount          float64
	megabytes       int64
	pids            int64
	portNumber      int64
	method          string
	pathForm        string
	byteSize        string
	repository      string
	fetchWord       string
	gitOperation    string
	ownWord         string
	pushWord        string
	priority        int64
)

const (
	durationPattern = `([0-9]{1,10}[wdhms])+`
	hostPattern     = `^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*`
	namePattern     = hostPattern + `(:[0-9]{1,5})?$`
	lockfilePattern = `(^|/)(uv\.lock|pylock\.([^/]*\.)?toml|[^/]*\.txt|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go(\.work)?\.sum)$`
	bytesPattern    = `^[0-9]{1,13}([kKMGT]i?)?B?$`
	variablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`
	quantityPattern = `^[0-9][0-9.]*(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`
)

// plainForms are the kinds that are one type of JSON, and a pattern or a range.
func plainForms() map[reflect.Type]node {
	return map[reflect.Type]node{
		reflect.TypeFor[bool]():           {{"type", "boolean"}},
		reflect.TypeFor[textValue]():      {{"type", "string"}, {"minLength", 1}},
		reflect.TypeFor[anyText]():        {{"type", "string"}},
		reflect.TypeFor[freeObject]():     {{"type", "object"}},
		reflect.TypeFor[engineName]():     matching(`^[a-z][a-z0-9-]{0,39}$`),
		reflect.TypeFor[networkName]():    matching(namePattern),
		reflect.TypeFor[hostName]():       matching(hostPattern + "$"),
		reflect.TypeFor[token]():          matching(`^[A-Za-z0-9_-]{1,128}$`),
		reflect.TypeFor[variableName]():   matching(variablePattern),
		reflect.TypeFor[variables]():      either(matching(variablePattern), node{{"type", "array"}, {"items", matching(variablePattern)}, {"minItems", 1}, {"maxItems", maxVariables}}),
		reflect.TypeFor[absolutePath]():   matching(`^/`),
		reflect.TypeFor[indexURL]():       matching(`^[Hh][Tt][Tt][Pp][Ss]?://`),
		reflect.TypeFor[duration]():       matching("^" + durationPattern + "$"),
		reflect.TypeFor[onHold]():         matching("^(fail|freeze|wait " + durationPattern + ")$"),
		reflect.TypeFor[null]():           {{"type", "null"}},
		reflect.TypeFor[never]():          {{"const", false}},
		reflect.TypeFor[timeoutSeconds](): ranging("number", 0.001, maxSeconds),
		reflect.TypeFor[cores]():          ranging("number", 0.01, maxCores),
		reflect.TypeFor[amount]():         ranging("number", 0, 1e12),
		reflect.TypeFor[megabytes]():      ranging("integer", 1, maxMB),
		reflect.TypeFor[pids]():           ranging("integer", 1, maxPids),
		reflect.TypeFor[portNumber]():     ranging("integer", 1, maxPort),
		reflect.TypeFor[method]():         matching(`^[A-Z-]{1,20}$`),
		reflect.TypeFor[pathForm]():       matching(`^/`),
		reflect.TypeFor[repository]():     matching(`^[A-Za-z0-9._~+@*/-]+$`),
		reflect.TypeFor[byteSize]():       either(node{{"type", "integer"}, {"minimum", 0}}, matching(bytesPattern)),
		reflect.TypeFor[priority]():       ranging("integer", -1_000_000, 1_000_000),
		reflect.TypeFor[someLockfiles]():  {{"type", "array"}, {"items", matching(lockfilePattern)}, {"minItems", 1}, {"uniqueItems", true}},
		reflect.TypeFor[operand]():        either(someOperand(), node{{"type", "array"}, {"items", someOperand()}}),
		reflect.TypeFor[quantity]():       either(node{{"type", "number"}}, matching(quantityPattern)),
		reflect.TypeFor[ports]():          either(ranging("integer", 1, maxPort), matching(`^[1-9][0-9]{0,4}-[1-9][0-9]{0,4}$`)),
	}
}

// shorthands are the objects that can also be written as one value of another kind.
func shorthands() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		reflect.TypeFor[hostKeys]():     reflect.TypeFor[networkName](),
		reflect.TypeFor[scanningKeys](): reflect.TypeFor[bool](),
	}
}

// wordsOfKinds are the kinds that are one of a few words.
func wordsOfKinds() map[reflect.Type][]string {
	ecosystems := []string{}
	for _, e := range pkgref.Ecosystems() {
		ecosystems = append(ecosystems, string(e))
	}
	return map[reflect.Type][]string{
		reflect.TypeFor[modeWord]():        {modeEnforce, modeObserve},
		reflect.TypeFor[effect]():          {"deny", "hold", "allow"},
		reflect.TypeFor[severityWord]():    severityWords()[SeverityLow:],
		reflect.TypeFor[action]():          {"allow", "audit", "deny", "block"},
		reflect.TypeFor[ruleAction]():      {"allow", "audit", "deny", "block", actionApprove},
		reflect.TypeFor[networkDefault]():  {"deny", "allow"},
		reflect.TypeFor[presetName]():      presetNames(),
		reflect.TypeFor[unlistedName]():    {string(Deny), string(Hold)},
		reflect.TypeFor[gitOperation]():    {string(gitwire.Fetch), string(gitwire.Push)},
		reflect.TypeFor[ownWord]():         {"refuse", "allow"},
		reflect.TypeFor[fetchWord]():       {string(Allow), string(Deny)},
		reflect.TypeFor[pushWord]():        {string(Allow), string(Hold), string(Deny)},
		reflect.TypeFor[ageWord]():         {string(ageTrusted), string(ageFirstSeen), string(ageIgnored)},
		reflect.TypeFor[systemWord]():      {string(Deny), string(Allow)},
		reflect.TypeFor[untrustedWord]():   {string(Deny), string(Hold), string(Allow), throwaway},
		reflect.TypeFor[placeWord]():       {throwaway},
		reflect.TypeFor[unaccounted]():     {string(UnaccountedRecord), string(UnaccountedAlarm), string(UnaccountedEnd)},
		reflect.TypeFor[lockWord]():        {string(LockFrozen), string(LockPrefer)},
		reflect.TypeFor[ecosystem]():       ecosystems,
		reflect.TypeFor[operator]():        {"eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "matches", "contains"},
		reflect.TypeFor[mountMode]():       {"read_only", "read_write"},
		reflect.TypeFor[environmentMode](): {"ephemeral", "persistent"},
		reflect.TypeFor[outcomeWord]():     dlp.Words(),
		reflect.TypeFor[justInTime]():      {"just_in_time"},
		reflect.TypeFor[restricted]():      {"restricted"},
		reflect.TypeFor[denyAll]():         {"deny_all"},
	}
}

// someOperand is one value that a field is compared with.
func someOperand() node {
	return either(node{{"type", "string"}, {"minLength", 1}}, node{{"type", []string{"number", "boolean"}}})
}

func matching(pattern string) node { return node{{"type", "string"}, {"pattern", pattern}} }

func ranging(kind string, least, most float64) node {
	return node{{"type", kind}, {"minimum", least}, {"maximum", most}}
}

func either(forms ...node) node { return node{{"anyOf", forms}} }
