package e2b

import (
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

// The messages of the data plane's calls in the binary form: the names, numbers and
// types of their fields. A message's name is of no matter on the wire.

// field is one of a message's.
type field struct {
	number int32
	name   string
	kind   descriptorpb.FieldDescriptorProto_Type
	of     string // the message or enumeration that it has
	many   bool
	texts  bool   // it is a map of texts
	given  bool   // that it is there is told, even if it is the zero of its kind
	choice string // of the fields of one choice there is one
}

// The kinds of fields.
const (
	kindText    = descriptorpb.FieldDescriptorProto_TYPE_STRING
	kindBytes   = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	kindFlag    = descriptorpb.FieldDescriptorProto_TYPE_BOOL
	kindNumber  = descriptorpb.FieldDescriptorProto_TYPE_UINT32
	kindSigned  = descriptorpb.FieldDescriptorProto_TYPE_SINT32
	kindLong    = descriptorpb.FieldDescriptorProto_TYPE_INT64
	kindMessage = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	kindOneOf   = descriptorpb.FieldDescriptorProto_TYPE_ENUM
)

// timeMessage is a library's own.
const timeMessage = ".google.protobuf.Timestamp"

func textField(number int32, name string) field {
	return field{number: number, name: name, kind: kindText}
}

func having(number int32, name, of string) field {
	return field{number: number, name: name, kind: kindMessage, of: of}
}

// processMessages are those of processes.
func processMessages() map[string][]field {
	process := having(1, "process", "Selector")
	return map[string][]field{
		"Size":     {{number: 1, name: "cols", kind: kindNumber}, {number: 2, name: "rows", kind: kindNumber}},
		"Terminal": {having(1, "size", "Size")},
		"Config":   {textField(1, "cmd"), {number: 2, name: "args", kind: kindText, many: true}, {number: 3, name: "envs", texts: true}, {number: 4, name: "cwd", kind: kindText, given: true}},
		"Info":     {having(1, "config", "Config"), {number: 2, name: "pid", kind: kindNumber}, {number: 3, name: "tag", kind: kindText, given: true}},
		"List":     {{number: 1, name: "processes", kind: kindMessage, of: "Info", many: true}},
		"Start": {
			having(1, "process", "Config"), having(2, "pty", "Terminal"),
			{number: 3, name: "tag", kind: kindText, given: true},
			{number: 4, name: "stdin", kind: kindFlag, given: true},
		},
		"Selector": {{number: 1, name: "pid", kind: kindNumber, choice: "selector"}, {number: 2, name: "tag", kind: kindText, choice: "selector"}},
		"Selected": {process},
		"Update":   {process, having(2, "pty", "Terminal")},
		"Input":    {{number: 1, name: "stdin", kind: kindBytes, choice: "input"}, {number: 2, name: "pty", kind: kindBytes, choice: "input"}},
		"Send":     {process, having(2, "input", "Input")},
		"Sent":     {having(2, "input", "Input")},
		"Streamed": inputEventFields(),
		"Signal":   {process, {number: 2, name: "signal", kind: kindOneOf, of: "Signals"}},
		"Started":  {{number: 1, name: "pid", kind: kindNumber}},
		"Output": {
			{number: 1, name: "stdout", kind: kindBytes, choice: "output"},
			{number: 2, name: "stderr", kind: kindBytes, choice: "output"},
			{number: 3, name: "pty", kind: kindBytes, choice: "output"},
		},
		"Ended": {
			{number: 1, name: "exit_code", kind: kindSigned},
			{number: 2, name: "exited", kind: kindFlag},
			textField(3, "status"),
			{number: 4, name: "error", kind: kindText, given: true},
		},
		"Event": {
			{number: 1, name: "start", kind: kindMessage, of: "Started", choice: "event"},
			{number: 2, name: "data", kind: kindMessage, of: "Output", choice: "event"},
			{number: 3, name: "end", kind: kindMessage, of: "Ended", choice: "event"},
			{number: 4, name: "keepalive", kind: kindMessage, of: "Nothing", choice: "event"},
		},
		"Events":  {having(1, "event", "Event")},
		"Nothing": {},
	}
}

// inputEventFields are those of a message of a client that streams input.
func inputEventFields() []field {
	return []field{
		{number: 1, name: "start", kind: kindMessage, of: "Selected", choice: "event"},
		{number: 2, name: "data", kind: kindMessage, of: "Sent", choice: "event"},
		{number: 3, name: "keepalive", kind: kindMessage, of: "Nothing", choice: "event"},
	}
}

// filesystemMessages are those of files.
func filesystemMessages() map[string][]field {
	path := textField(1, "path")
	recursive, entries := field{number: 2, name: "recursive", kind: kindFlag}, field{number: 3, name: "include_entry", kind: kindFlag}
	return map[string][]field{
		"Entry": {
			textField(1, "name"),
			{number: 2, name: "type", kind: kindOneOf, of: "Types"},
			textField(3, "path"),
			{number: 4, name: "size", kind: kindLong},
			{number: 5, name: "mode", kind: kindNumber},
			textField(6, "permissions"), textField(7, "owner"), textField(8, "group"),
			having(9, "modified_time", timeMessage),
			{number: 10, name: "symlink_target", kind: kindText, given: true},
			{number: 11, name: "metadata", texts: true},
		},
		"Path":    {path},
		"Move":    {textField(1, "source"), textField(2, "destination")},
		"One":     {having(1, "entry", "Entry")},
		"List":    {path, {number: 2, name: "depth", kind: kindNumber}},
		"Entries": {{number: 1, name: "entries", kind: kindMessage, of: "Entry", many: true}},
		"Watch":   {path, recursive, entries},
		"Change":  {textField(1, "name"), {number: 2, name: "type", kind: kindOneOf, of: "Changes"}, having(3, "entry", "Entry")},
		"Watched": {
			{number: 1, name: "start", kind: kindMessage, of: "Nothing", choice: "event"},
			{number: 2, name: "filesystem", kind: kindMessage, of: "Change", choice: "event"},
			{number: 3, name: "keepalive", kind: kindMessage, of: "Nothing", choice: "event"},
		},
		"Watcher": {textField(1, "watcher_id")},
		"Changed": {{number: 1, name: "events", kind: kindMessage, of: "Change", many: true}},
		"Nothing": {},
	}
}

// enumerations are both services'.
func enumerations() map[string]map[string]map[string]int32 {
	return map[string]map[string]map[string]int32{
		"process": {"Signals": {"SIGNAL_UNSPECIFIED": 0, "SIGNAL_SIGKILL": 9, "SIGNAL_SIGTERM": 15}},
		"filesystem": {
			"Types": {"FILE_TYPE_UNSPECIFIED": 0, typeFile: 1, typeDirectory: 2, "FILE_TYPE_SYMLINK": 3},
			"Changes": {
				"EVENT_TYPE_UNSPECIFIED": 0, "EVENT_TYPE_CREATE": 1, "EVENT_TYPE_WRITE": 2, "EVENT_TYPE_REMOVE": 3, "EVENT_TYPE_RENAME": 4, "EVENT_TYPE_CHMOD": 5,
			},
		},
	}
}

// callMessages are what each call takes and answers; of a stream, each message of it.
func callMessages() map[string][2]string {
	process, files := "process.", "filesystem."
	nothing, filesNothing := process+"Nothing", files+"Nothing"
	return map[string][2]string{
		processService + "Start":               {process + "Start", process + "Events"},
		processService + "Connect":             {process + "Selected", process + "Events"},
		processService + "List":                {nothing, process + "List"},
		processService + "SendInput":           {process + "Send", nothing},
		processService + "CloseStdin":          {process + "Selected", nothing},
		processService + "SendSignal":          {process + "Signal", nothing},
		processService + "Update":              {process + "Update", nothing},
		processService + "StreamInput":         {process + "Streamed", nothing},
		filesystemService + "Stat":             {files + "Path", files + "One"},
		filesystemService + "MakeDir":          {files + "Path", files + "One"},
		filesystemService + "Move":             {files + "Move", files + "One"},
		filesystemService + "ListDir":          {files + "List", files + "Entries"},
		filesystemService + "Remove":           {files + "Path", filesNothing},
		filesystemService + "WatchDir":         {files + "Watch", files + "Watched"},
		filesystemService + "CreateWatcher":    {files + "Watch", files + "Watcher"},
		filesystemService + "GetWatcherEvents": {files + "Watcher", files + "Changed"},
		filesystemService + "RemoveWatcher":    {files + "Watcher", filesNothing},
	}
}

// describeFile describes a service's messages as the library takes them.
func describeFile(pkg string, messages map[string][]field, enums map[string]map[string]int32) *descriptorpb.FileDescriptorProto {
	file := &descriptorpb.FileDescriptorProto{
		Name: new(pkg), Package: new(pkg), Syntax: new("proto3"), Dependency: []string{"google/protobuf/timestamp.proto"},
	}
	for name, fields := range messages {
		file.MessageType = append(file.MessageType, describeMessage(pkg, name, fields))
	}
	for name, values := range enums {
		enum := &descriptorpb.EnumDescriptorProto{Name: new(name)}
		for value, number := range values {
			described := &descriptorpb.EnumValueDescriptorProto{Name: new(value), Number: new(number)}
			if number == 0 { // which is to be the first
				enum.Value = append([]*descriptorpb.EnumValueDescriptorProto{described}, enum.GetValue()...)
				continue
			}
			enum.Value = append(enum.Value, described)
		}
		file.EnumType = append(file.EnumType, enum)
	}
	return file
}

func describeMessage(pkg, name string, fields []field) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: new(name)}
	choices := map[string]int32{}
	choice := func(name string) *int32 {
		if _, known := choices[name]; !known {
			choices[name] = int32(len(choices))
			m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: new(name)})
		}
		return new(choices[name])
	}
	for _, f := range fields { // the library wants those of real choices first
		if f.choice != "" {
			choice(f.choice)
		}
	}
	for _, f := range fields {
		d := &descriptorpb.FieldDescriptorProto{
			Name: new(f.name), Number: new(f.number), Type: f.kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		switch {
		case f.texts:
			entry := strings.ToUpper(f.name[:1]) + f.name[1:] + "Entry"
			both := describeMessage(pkg, entry, []field{textField(1, "key"), textField(2, "value")})
			both.Options = &descriptorpb.MessageOptions{MapEntry: new(true)}
			m.NestedType = append(m.NestedType, both)
			d.Type, f.many = kindMessage.Enum(), true
			d.TypeName = new("." + pkg + "." + name + "." + entry)
		case strings.HasPrefix(f.of, "."):
			d.TypeName = new(f.of)
		case f.of != "":
			d.TypeName = new("." + pkg + "." + f.of)
		}
		switch {
		case f.many:
			d.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		case f.choice != "":
			d.OneofIndex = choice(f.choice)
		case f.given:
			d.OneofIndex, d.Proto3Optional = choice("_"+f.name), new(true)
		}
		m.Field = append(m.Field, d)
	}
	return m
}
