package masking

import (
	"regexp"
	"slices"
)

// camelWord is a pattern of a word as names have it: "img", "Llama", "MobileNet", "SmolLM", "ILSVRC".
const camelWord = `(?:[A-Z]?[a-z]{1,15}(?:[A-Z][a-z]{2,15})?|[A-Z]?[a-z]{3,15}(?:[A-Z][a-z]{2,15})?[A-Z]{1,2}|[A-Z]{1,8})`

var (
	// namePiece is a number, a word, or a word with a number before it or behind it: "Qwen2",
	// "8B", "8x7B".
	namePiece = regexp.MustCompile(`^(?:\d{1,8}` + camelWord + `?|` + camelWord + `\d{0,8}|\d{1,2}x\d{1,3}[A-Za-z]?)$`)
	// smallLetters are those of one word.
	smallLetters = regexp.MustCompile(`[A-Z]?[a-z]+`)
	// oddSigns are in no name: at its ends, side by side, or of both kinds.
	oddSigns = regexp.MustCompile(`^[-_. ]|[-_. ]$|[-_. ]{2}|-.*_|_.*-`)
	// beginning is how a word may begin that can be spoken, or is a common short form.
	beginning = regexp.MustCompile(`(?i)^(?:[^aeiouy]?[aeiouy]|[bcfgp]l|[bcdfgptw]r|[cgpstw]h|s[cklmnptw]|kn|ll|qw|tw|x[ml]|img|vgg)`)
	// vowel is in each longer word, and no five other letters are side by side.
	vowel      = regexp.MustCompile(`(?i)[aeiouy]`)
	consonants = regexp.MustCompile(`(?i)[^aeiouy]{5}`)
)

const (
	shortWord = 3 // letters, which may be csv
	// wordShare of a name are words: two of five characters.
	wordShare, ofCharacters = 2, 5
)

// isName reports whether a text with a digit and a capital letter reads as the name of a
// model, of data or of a file: "Qwen2.5-0.5B-Instruct", "ILSVRC2012_img_train". It has several
// pieces, and words make up much of it. A token by chance does so seldom: of two million each,
// none of 24 letters and digits or of 32 characters of base64 for URLs, one in 500,000 of 22
// such characters, and one in 13,000 of 16 (measured on 2026-11-26 with the test's generator).
func isName(text string, pieces []string) bool {
	if len(pieces) < 2 || oddSigns.MatchString(text) || slices.ContainsFunc(pieces, func(piece string) bool { return !namePiece.MatchString(piece) }) {
		return false
	}

	ofWords := 0

	for _, word := range smallLetters.FindAllString(text, -1) {
		begins := beginning.MatchString(word)

		switch {
		case len(word) > shortWord && (!begins || !vowel.MatchString(word) || consonants.MatchString(word)):
			return false
		case len(word) >= shortWord && begins:
			ofWords += len(word)
		}
	}

	return ofCharacters*ofWords >= wordShare*len(text)
}
