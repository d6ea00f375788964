package masking

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// minToken is the shortest part of a URL that is taken for a token, minShared that of something
// shared: Nextcloud's has 15 bytes.
const minToken, minShared = 16, 12

var (
	// hookHost and hookSegment are of a URL that says itself that its path logs in: that of a webhook, a topic that
	// a person chose. shareSegment is before the token of something shared.
	hookHost     = regexp.MustCompile(`(?i)^(?:[\w-]+\.)*(?:(?:web)?hooks?|ntfy)(?:[.:]|$)`)
	hookSegment  = regexp.MustCompile(`(?i)^(?:web)?hooks?(?:b2)?$`)
	shareSegment = regexp.MustCompile(`(?i)^(?:s|share|invite)$`)
	// hexToken is a token in hex or a UUID.
	hexToken = regexp.MustCompile(`(?i)^(?:[0-9a-f]{20,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:@|$)`)
	// smallToken is one in small letters and digits, such as Mattermost's: names have digits in
	// three places at most (mobilenetv2ssd300coco2017).
	smallToken = regexp.MustCompile(`^[a-z]*\d+(?:[a-z]+\d+){3,}[a-z]*$`)
	// signature is a field of a query that opens the path, however short its value is.
	signature = regexp.MustCompile(`(?i)(?:^|&)(?:sig|signature|token)=[^&]`)
	// digit and capital are both in a token that is not in hex, by chance: a word or a file's
	// name seldom has both.
	digit, capital = regexp.MustCompile(`\d`), regexp.MustCompile(`[A-Z]`)
	// knownToken is one that begins as its service has it begin.
	knownToken = regexp.MustCompile(`^(?:gh[oprsu]|hf)_[A-Za-z0-9]{30,}$|^(?:github_pat_|glpat-|xox[a-z]-)\w`)
	// dateTime is a time in ISO 8601.
	dateTime = regexp.MustCompile(`^\d{4}-?\d\d-?\d\d[T ]\d\d:?\d\d(?::?\d\d(?:\.\d{1,9})?)?(?:Z|[+ -]\d\d:?\d\d)?$`)
	// letters alone are one token in sixty of 24 characters.
	letters = regexp.MustCompile(`^[A-Za-z]+$`)
)

// minSmallToken is how long a token in small letters is at least.
const minSmallToken = 20

// hasCredential reports whether the value of a query's field looks like a credential.
func hasCredential(field string) bool {
	_, value, _ := strings.Cut(field, "=")

	return isCredential(value)
}

// sharedToken is the token of a path to something shared; empty = it has none. Most names of
// folders are of small letters alone; others are hidden, too.
func sharedToken(segments []string) string {
	at := slices.IndexFunc(segments, shareSegment.MatchString) + 1
	if at == 0 || at == len(segments) || len(segments[at]) < minShared || !digit.MatchString(segments[at]) && !capital.MatchString(segments[at]) {
		return ""
	}

	return segments[at]
}

// isCredential reports whether a part of a URL looks like a credential and not like words.
func isCredential(part string) bool {
	if plain, err := url.PathUnescape(part); err == nil { // %20 has a digit
		part = plain
	}

	if len(part) < minToken {
		return false
	}

	pieces := strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune("-_. ", r) })
	if hexToken.MatchString(part) || knownToken.MatchString(part) || slices.ContainsFunc(pieces, isToken) {
		return true
	}

	return digit.MatchString(part) && capital.MatchString(part) && !isName(part, pieces) && !dateTime.MatchString(part)
}

// isToken reports whether a piece without signs looks random: letters with too many capitals, or
// small letters and digits by turns.
func isToken(piece string) bool {
	capitals := len(capital.FindAllString(piece, -1))
	mixed := len(piece) >= minToken && letters.MatchString(piece) && 4*capitals > len(piece) && capitals < len(piece) // CamelCase has fewer

	return mixed || len(piece) >= minSmallToken && smallToken.MatchString(piece)
}
