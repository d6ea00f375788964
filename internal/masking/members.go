package masking

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is how many texts may stand in one another, such as JSON in a text of JSON.
	maxDepth = 3
	// maxMembers is how long all members of a value are together: four times what the
	// longest value is that has some.
	maxMembers = 4 * maxEscaped
)

// commonWords are of minMaskedLine bytes or more, stand in files of settings beside a
// secret, and in the log of most programs: a log without them cannot be read.
var commonWords = []string{
	"127.0.0.1", "accuracy", "anonymous", "database", "development", "disabled", "docker.io", "eu-central-1", "eu-west-1",
	"external", "github.com", "gitlab.com", "huggingface.co", "internal", "kubernetes", "localhost", "localhost:5432",
	"optional", "password", "postgres", "postgresql", "production", "readonly", "required", "s3.amazonaws.com", "standard",
	"tensorflow", "training", "undefined", "us-east-1", "us-west-2", "username", "validation", "val_loss", "verify-ca",
	"verify-full", "x-oauth-basic",
}

var (
	// fieldName is a name before a value, with what parts them, as files of environment
	// variables, INI, TOML, properties, YAML, headers, connection strings, queries of URLs
	// and libpq have it. The value goes on from there, at most to the end of the line.
	fieldName = regexp.MustCompile(`(?m)(?:^|[\s;&?,{(])["']?[\w.-]+["']?[ \t]*[=:]`)
	// inQuotes is a text in quotes, which may go over several lines.
	inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	// afterQuotes is behind a text in quotes that is the name of a value.
	afterQuotes = regexp.MustCompile(`^[ \t]*[:=]`)
	// loginPassword is the password of a machine in .netrc.
	loginPassword = regexp.MustCompile(`\bpassword\s+(\S+)`)
	// authScheme is what stands before the value in an Authorization header.
	authScheme = regexp.MustCompile(`(?i)^(?:bearer|basic|token|apikey)[ \t]+(\S+)`)
	// address is a URL, up to what cannot be in one.
	address = regexp.MustCompile(`(\w+)://([^\s"'<>]+)`)
	// withPassword is a user's name and the beginning of a password: no port is behind the colon.
	withPassword = regexp.MustCompile(`:\d*[^\d]`)
	// noPassword is what stands for one beside a token of git's.
	noPassword = []string{"", "x-oauth-basic"}
)

// membersOf are the parts of a value that programs take out of it, and what is in such
// parts in turn, each once. Beyond maxMembers the longest are left out: what many fields of
// one line make is long, and grows with the square of their number.
func membersOf(value []byte) [][]byte {
	var found [][]byte

	seen, room := make(map[string]bool), maxMembers

	for texts, depth := []string{string(value)}, 0; len(texts) > 0 && depth < maxDepth; depth++ {
		var parts []string
		for _, text := range texts {
			parts = append(parts, partsOf(text)...)
		}

		slices.SortStableFunc(parts, func(a, b string) int { return len(a) - len(b) })

		texts = nil

		for _, part := range parts {
			if !seen[part] && len(part) <= room {
				seen[part], room = true, room-len(part)
				found, texts = append(found, []byte(part)), append(texts, part)
			}
		}
	}

	return found
}

// partsOf are the texts in JSON and YAML, texts in quotes, the values of named fields, and
// passwords of URLs and in .netrc. Those shorter than minMaskedLine are left out, as they
// are in too many texts, and so are commonWords.
func partsOf(text string) (parts []string) {
	take := func(part string) {
		part = strings.TrimSpace(part)
		if len(part) >= minMaskedLine && len(part) < len(text) && !slices.Contains(commonWords, strings.ToLower(part)) {
			parts = append(parts, part)
		}
	}

	eachJSON(text, take)
	eachYAML(text, take)
	eachQuoted(text, take)
	eachField(text, take)
	eachAddress(text, take)

	for _, found := range loginPassword.FindAllStringSubmatch(text, -1) {
		take(strings.Trim(found[1], `"'`))
	}

	return parts
}

// eachJSON gives the texts in JSON documents, one or one a line.
func eachJSON(text string, take func(string)) {
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var document any
		if decoder.Decode(&document) != nil {
			return
		}

		eachText(document, take)
	}
}

// eachText gives the texts in a JSON document, whatever they are in.
func eachText(document any, take func(string)) {
	switch v := document.(type) {
	case string:
		take(v)
	case []any:
		for _, item := range v {
			eachText(item, take)
		}
	case map[string]any:
		for _, item := range v {
			eachText(item, take)
		}
	}
}

// eachYAML gives the values in YAML documents, up to the first that is none.
func eachYAML(text string, take func(string)) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return
		}

		eachScalar(&document, take)
	}
}

func eachScalar(node *yaml.Node, take func(string)) {
	if node.Kind == yaml.ScalarNode {
		take(node.Value)
	}

	for i, child := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 { // no key
			eachScalar(child, take)
		}
	}
}

// eachQuoted gives what is in quotes and names nothing.
func eachQuoted(text string, take func(string)) {
	for _, at := range inQuotes.FindAllStringIndex(text, -1) {
		if afterQuotes.MatchString(text[at[1]:]) {
			continue
		}

		in := text[at[0]+1 : at[1]-1]
		take(in)

		var plain string
		if text[at[0]] == '"' && json.Unmarshal([]byte(text[at[0]:at[1]]), &plain) == nil {
			take(plain)
		}
	}
}

// eachField gives the values of named fields. Where a value ends depends on what the file
// is: each end that it may have is taken.
func eachField(text string, take func(string)) {
	for _, at := range fieldName.FindAllStringIndex(text, -1) {
		line, _, _ := strings.Cut(text[at[1]:], "\n")
		if strings.HasPrefix(line, "//") { // the scheme of a URL
			continue
		}

		ends := []string{" #", "\t#", " ;", "\t;"} // of comments
		if text[at[1]-1] == '=' {
			ends = append(ends, " ", "\t", ";", "&", ",")
		}

		value := strings.TrimSpace(line)
		take(strings.Trim(value, `"',`))

		for _, end := range ends {
			if part, _, ok := strings.Cut(line, end); ok {
				part = strings.Trim(part, "\"', \t")
				take(part)
				takeQuery(part, take)
			}
		}

		if found := authScheme.FindStringSubmatch(value); found != nil {
			take(found[1])
		}

		takeQuery(value, take)
	}
}

// takeQuery takes what a part of a URL's query means.
func takeQuery(part string, take func(string)) {
	if plain, err := url.QueryUnescape(part); err == nil && plain != part {
		take(plain)
	}
}

// eachAddress gives the passwords of URLs, and the user's name or the path where that is what
// logs in.
func eachAddress(text string, take func(string)) {
	for _, found := range address.FindAllStringSubmatch(text, -1) {
		scheme, rest := found[1], found[2]
		authority, _, _ := strings.Cut(rest, "/")

		login, named := beforeLast(authority)
		user, password, _ := strings.Cut(login, ":")

		if named && strings.HasPrefix(scheme, "http") && slices.Contains(noPassword, password) {
			takeEscaped(user, take) // a token of git's
		}

		slashed := strings.Contains(rest, "@") && withPassword.MatchString(authority) // a slash is in the password
		if strings.HasPrefix(scheme, "http") && !named && !slashed {
			takePath(authority, rest[len(authority):], take)
		}

		first, _, _ := strings.Cut(rest, "@")
		whole, _ := beforeLast(rest) // of a password with a slash, which is no URL, but is written

		for _, login := range []string{login, first, whole} {
			if _, password, ok := strings.Cut(login, ":"); ok && strings.Contains(rest, "@") {
				takeEscaped(password, take)
			}
		}
	}
}

// takePath takes what logs in to a webhook, as clients print it: the path of several segments,
// with its query or without, and the long segments. Most paths log in to nothing, and name
// data and projects that logs are about: they are of no webhook, and have nothing that looks
// like a credential.
func takePath(host, target string, take func(string)) {
	path, query, _ := strings.Cut(target, "?")
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })

	shared := sharedToken(segments)
	logsIn := hookHost.MatchString(host) || slices.ContainsFunc(segments, hookSegment.MatchString) || slices.ContainsFunc(segments, isCredential) ||
		signature.MatchString(query) || slices.ContainsFunc(strings.Split(query, "&"), hasCredential)

	if !logsIn && shared == "" {
		return
	}

	takeEscaped(shared, take)

	if len(segments) > 1 {
		takeEscaped(target, take)
		takeEscaped(strings.TrimSuffix(path, "/"), take)
	}

	for _, segment := range segments {
		if logsIn && len(segment) >= minToken {
			takeEscaped(segment, take)
		}
	}
}

// beforeLast is what is before the last @.
func beforeLast(text string) (string, bool) {
	at := strings.LastIndexByte(text, '@')

	return text[:max(at, 0)], at >= 0
}

// takeEscaped takes a part of a URL as it is, and as it is meant.
func takeEscaped(part string, take func(string)) {
	take(part)

	if plain, err := url.PathUnescape(part); err == nil {
		take(plain)
	}
}
