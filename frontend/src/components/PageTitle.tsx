import { Title } from "@mantine/core";

/** The heading of a page, which is also the title of its tab. */
export function PageTitle({ text }: { text: string }) {
  return (
    <>
      <title>{`${text} – Berth`}</title>
      <Title order={1} mb="sm" className="break">
        {text}
      </Title>
    </>
  );
}
