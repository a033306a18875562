declare module "*.svg" {
  /** Where the build has put it, seen from the page. */
  const path: string;
  export default path;
}
declare module "*.css";
