import { Anchor, Button, type AnchorProps, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

type Native<Props> = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof Props> & { ref?: Ref<HTMLAnchorElement> };

/** A link to a page, with Mantine's look; its address is checked by the compiler. */
export const PageLink = createLink((props: AnchorProps & Native<AnchorProps>) => <Anchor {...props} />);

/** The same as a button. */
export const PageButton = createLink((props: ButtonProps & Native<ButtonProps>) => <Button component="a" {...props} />);
